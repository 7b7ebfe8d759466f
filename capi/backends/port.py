"""What infrastructure must be able to do. Every backend implements this port; controllers know nothing else of it.

All verbs are idempotent: repeating one that was carried out changes nothing, so a pass may be cut off and run again at
any point. An instance is identified by its provider ID, the one its Node carries. Nothing is parsed out of names.
Refusals are BackendErrors; the reason of one goes into a condition.
"""

from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Literal, Protocol, TypeVar

from capi.client.pki import KeyPair
from capi.kube.conditions import Condition
from capi.kube.errors import BackendError
from capi.runtime.plan import ClusterKey


class Stage(StrEnum):
    """How far an instance has come."""

    STARTING = "Starting"
    """The machine is being made or is booting."""
    RUNNING = "Running"
    """The machine is up, its Node has not joined."""
    JOINED = "Joined"
    """Its Node is in the workload cluster, or nothing more is to be done that it joins."""
    STOPPED = "Stopped"
    """The machine is there and does not run; whoever looks after Machines decides what becomes of it."""


@dataclass(frozen=True, slots=True)
class Delay:
    """A simulated duration: `base`, plus a part of it that is drawn once per instance between 0 and `jitter`."""

    base: timedelta = timedelta()
    jitter: float = 0.0


@dataclass(frozen=True, slots=True)
class Limit:
    """Simulated shortage: no more than `most` machines of a pool, or of a cluster, can be had at a time."""

    most: int
    pool: str = ""
    """Name of the infra pool that it counts for; "" for all machines of the cluster."""
    running: int = 0
    """Machines that are known to run, the one that is asked for left out; the backend may know of more."""


@dataclass(frozen=True, slots=True)
class ControlPlaneSpec:
    """What an in-memory instance is told that is to be a member of its cluster's control plane."""

    port: int
    """Where the cluster's API is served; the same for all members."""
    authority: KeyPair
    """Of the cluster's certificates."""
    etcd: Delay = Delay()
    """From the Node to the etcd member."""
    api_server: Delay = Delay()
    """From the Node to the API server."""
    node_since: datetime | None = None
    """When the Node was first reported as there; with second precision, as API objects carry it."""


@dataclass(frozen=True, slots=True)
class ControlPlaneProgress:
    """How far a member of a control plane is."""

    etcd: bool = False
    api_server: bool = False


@dataclass(frozen=True, slots=True)
class Simulation:
    """What an in-memory instance is told beyond the common: how long things take, and what goes wrong."""

    vm: Delay = Delay()
    """From `InstanceSpec.created` to a running machine."""
    node: Delay = Delay()
    """From the running machine to its Node."""
    lost: bool = False
    """Fault injection: the machine vanishes; also how a loss that was reported before is kept up after a restart."""
    never_joins: bool = False
    """Fault injection: the machine runs and its Node does not come; one that is there stays."""
    ready: Literal["True", "False", "Unknown"] = "True"
    """What the Node's condition Ready says; anything but True is fault injection, and ends the heartbeat."""
    limits: tuple[Limit, ...] = ()
    """Fault injection: shortages that count for this machine until it is made."""
    control_plane: ControlPlaneSpec | None = None
    """Of control plane machines: the cluster's API is served by those there are."""


class IPFamily(StrEnum):
    """Which addresses a cluster uses, by the CIDR blocks of its Pods and Services."""

    V4 = "IPv4"
    V6 = "IPv6"
    DUAL = "DualStack"


@dataclass(frozen=True, slots=True)
class HostMount:
    """A path of the host that the instance sees."""

    container_path: str
    host_path: str
    read_only: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Container:
    """What an instance that is a container is told beyond the common."""

    image: str = ""
    """The image to run; "" = the node image of the version."""
    preload: tuple[str, ...] = ()
    """Images of the host that the instance is given before it joins."""
    mounts: tuple[HostMount, ...] = ()
    bootstrap_timeout: timedelta = timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class BootstrapData:
    """What turns a running machine into a Node: the content of a bootstrap Secret."""

    value: bytes = field(repr=False)
    format: str = ""
    """cloud-config or ignition; "" = cloud-config."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceSpec:
    """An instance that is wanted."""

    id: str
    """Provider ID, unique in the world, e.g. `in-memory:///default/prod/workers-x7k2p`."""
    name: str
    """Name of its InfraMachine, by which it is found again."""
    host: str = ""
    """What host name and Node are called after; "" = `name`."""
    uid: str
    """Of the InfraMachine; seeds whatever is random about the instance."""
    cluster: ClusterKey
    pool: str = ""
    """Name of the infra pool in the cluster's namespace; "" for a Machine on its own."""
    version: str
    """Kubernetes version of its kubelet."""
    failure_domain: str = ""
    created: datetime
    running_since: datetime | None = None
    """When the machine was first reported as running; with second precision, as API objects carry it."""
    pool_uid: str = ""
    """Of the infra pool."""
    control_plane: bool = False
    ip_family: IPFamily = IPFamily.V4
    made: bool = False
    """It was reported as running before: if it is not there, it has vanished."""
    bootstrapped: bool = False
    """It is known to have become a Node: nothing is executed in it again."""
    bootstrap: BootstrapData | None = None
    """None: not needed, or `bootstrapped`."""
    simulation: Simulation = field(default_factory=Simulation)
    container: Container = field(default_factory=Container)
    parameters: Mapping[str, str] = field(default_factory=dict)
    """Of `spec.backend.external`: what a backend of somebody else's wants to know."""


@dataclass(frozen=True, slots=True)
class Address:
    """An address of an instance; `type` is one of Cluster API's MachineAddressType."""

    type: str
    address: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Instance:
    """An instance as it is."""

    id: str
    name: str
    cluster: ClusterKey
    pool: str = ""
    stage: Stage
    steps: tuple[Condition, ...] = ()
    """What the backend has to say of its own steps, as conditions of the InfraMachine; (): `stage` says all."""
    addresses: tuple[Address, ...] = ()
    warnings: tuple[str, ...] = ()
    """What of its bootstrap data is not done, a sentence each."""
    waiting_for_control_plane: bool = False
    """It would join its cluster, but the workload API is not there yet."""
    trouble: BackendError | None = None
    """A step could not be taken, which its condition says; ask again."""
    control_plane: ControlPlaneProgress | None = None
    """Of a member of the control plane."""
    next_change: datetime | None = None
    """When to ask again at the latest; None: a watch will tell."""


@dataclass(frozen=True, slots=True)
class MachineShape:
    """What every instance offers to its cluster; an autoscaler reads it of a pool that has none."""

    capacity: Mapping[str, str]
    """Resource name to quantity, as in a Node's status."""
    architecture: str
    """In the words of Go: amd64, arm64."""
    operating_system: str


@dataclass(frozen=True, slots=True)
class InstanceEvent:
    """Something happened to an instance without being asked for; look at it again."""

    cluster: ClusterKey
    name: str
    pool: str = ""


class InstanceGone(BackendError):
    """The instance no longer exists and will not come back; delete its Machine to have it replaced."""

    def __init__(self, message: str = "") -> None:
        super().__init__(message, reason="InstanceGone")


class CapacityShortage(BackendError):
    """The infrastructure has no room for another instance; tried again, and told of when there may be room."""

    def __init__(self, message: str = "") -> None:
        super().__init__(message, reason="CapacityShortage")


class BackendUnavailable(BackendError):
    """The infrastructure does not answer; retried."""

    def __init__(self, message: str = "") -> None:
        super().__init__(message, reason="BackendUnavailable")


class PortTaken(BackendError):
    """Another process listens on the port; stop it, or delete the cluster and create it again to have another port."""

    def __init__(self, message: str = "") -> None:
        super().__init__(message, reason="PortTaken")


T_co = TypeVar("T_co", covariant=True)


class News(Protocol[T_co]):
    """What happens, as it happens, until the reader closes it: an asynchronous iterator."""

    def __aiter__(self) -> AsyncIterator[T_co]: ...

    async def __anext__(self) -> T_co: ...

    async def aclose(self) -> None: ...


class Backend(Protocol):
    """Infrastructure that runs instances."""

    bootstraps: bool
    """Instances execute bootstrap data: a spec without it, and not `bootstrapped`, has none to execute."""

    @property
    def shape(self) -> MachineShape | None:
        """What an instance will be like before there is one; None if the backend cannot tell."""
        ...

    async def measure(self) -> MachineShape | None:
        """`shape`, asking the infrastructure if need be. Raises BackendUnavailable."""
        ...

    def identify(self, cluster: ClusterKey, host: str) -> str:
        """The provider ID of an instance of that cluster and `InstanceSpec.host`. Pure, the same for ever."""
        ...

    def node_name(self, id_: str) -> str:
        """Name of the Node that an instance becomes, if it may not know its provider ID and is to be told; else "". Pure."""
        ...

    async def ensure_running(self, spec: InstanceSpec) -> Instance:
        """Make the instance, or go on making it, and say how far it is. Returns at once; long work goes on in the background.

        Raises InstanceGone when the instance was made before and has vanished: it is never silently made again.
        """
        ...

    async def ensure_absent(self, id_: str, name: str, cluster: ClusterKey, *, uid: str = "") -> None:
        """Remove the instance and what it left in its cluster. Returns when nothing is left.

        With `uid` (of its InfraMachine), only what was made for that very object: another may have the same name.
        """
        ...

    async def list(self, cluster: ClusterKey, pool: str, uid: str = "") -> Sequence[Instance]:
        """The instances of a pool that this backend knows of, ordered by name; with `uid`, only those of that very pool."""
        ...

    def events(self) -> "News[InstanceEvent]":
        """Changes from now on. A slow reader misses none: equal events are merged."""
        ...


@dataclass(frozen=True, slots=True)
class Balanced:
    """A control plane instance behind a load balancer."""

    name: str
    """Of the instance, not of its object."""
    address: str
    """Its IP address."""
    weight: int = 100
    """Its share of new connections; 0: gets none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadBalancerSpec:
    """A load balancer that is wanted."""

    cluster: ClusterKey
    uid: str
    """Of the InfraCluster."""
    host: str = ""
    """Where clients look for it: the address that was reported before, or one that a user gave; "" if there is none yet. With
    it, one that is there is this cluster's."""
    image: str
    port: int = 6443
    """On which clients reach the control plane."""
    ip_family: IPFamily = IPFamily.V4
    servers: tuple[Balanced, ...] = ()
    template: str = ""
    """A configuration template; "" = the backend's own."""


class LoadBalancers(Protocol):
    """Runs the load balancers of clusters whose control planes are instances."""

    async def ensure_running(self, spec: LoadBalancerSpec) -> Address:
        """Make, start or configure it until it does what `spec` says, and return the address that clients use.

        Nothing is done when it already does. Raises BackendError.
        """
        ...

    async def ensure_absent(self, cluster: ClusterKey, uid: str, *, made: bool = False) -> None:
        """Remove the one of the InfraCluster `uid`, if it is there; if there is none and its address was reported (`made`), the
        one that was there before the cluster was moved here."""
        ...

    def changes(self) -> News[ClusterKey]:
        """Clusters whose load balancer stopped, vanished or started without being asked for."""
        ...


class ControlPlanes(Protocol):
    """Hosts the API servers of simulated clusters."""

    @property
    def host(self) -> str:
        """Address that hosted API servers listen on."""
        ...

    def reserve(self, cluster: ClusterKey, taken: Collection[int], seed: str = "") -> int:
        """A port for the cluster's API server that is free now and not among `taken`. The same for every call of a process.

        `seed` (a uid) tells clusters of the same name apart, in several processes on one host.

        Raises BackendError when there is none.
        """
        ...

    async def ensure_running(self, cluster: ClusterKey, port: int, authority: KeyPair, version: str) -> None:
        """Serve the cluster's API on `host`:`port`, with certificates of `authority`, from what was kept of the cluster.

        Starts anew if any of the three differs from what is in use. Raises PortTaken, BackendError.
        """
        ...

    async def ensure_absent(self, cluster: ClusterKey) -> None:
        """Stop serving, free the port and forget all data of the cluster."""
        ...

    async def interrupt(self, cluster: ClusterKey, *, down: bool) -> None:
        """Fault injection: the cluster's API does not answer while `down`; its data stays. Told before `ensure_running`, the
        server starts in that state. Raises PortTaken, BackendError when it cannot listen again.
        """
        ...

    def failures(self) -> News[ClusterKey]:
        """Clusters whose server has ended by itself; `ensure_running` starts it again."""
        ...
