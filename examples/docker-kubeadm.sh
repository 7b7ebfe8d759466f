#!/bin/sh
# A cluster of containers with real Nodes: one control plane machine and a pool of two workers, by kubeadm, without any other
# provider. The bootstrap data that a bootstrap provider would write is written by hand here.
#
#   capi up                                            # in another terminal; says which KUBECONFIG to set
#   sh examples/docker-kubeadm.sh
#   kubectl delete cluster real; kubectl delete secret real-ca real-control-plane real-workers
#
# Needs a Docker engine whose containers can be reached from here, kubectl and openssl; VERSION is a tag of kindest/node.
set -eu
VERSION=${VERSION:-v1.34.0}
TOKEN=abcdef.0123456789abcdef # whoever knows it can join: for a trial only
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
secret() {
    kubectl create secret generic "$@" --type=cluster.x-k8s.io/secret --dry-run=client -o yaml |
        kubectl label --local -f - cluster.x-k8s.io/cluster-name=real -o yaml | kubectl apply --server-side -f -
}

kubectl apply --server-side -f - <<EOF
apiVersion: cluster.x-k8s.io/v1beta2
kind: Cluster
metadata: {name: real, namespace: default}
spec:
  clusterNetwork: {pods: {cidrBlocks: [192.168.0.0/16]}}
  infrastructureRef: {apiGroup: infrastructure.cluster.x-k8s.io, kind: DevCluster, name: real}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta2
kind: DevCluster
metadata: {name: real, namespace: default}
spec: {backend: {docker: {}}}
EOF
kubectl wait cluster real --namespace=default --for='jsonpath={.spec.controlPlaneEndpoint.host}' --timeout=10m # pulls an image
api=$(kubectl get cluster real --namespace=default -o jsonpath='{.spec.controlPlaneEndpoint.host}'):6443

# The cluster's authority. With it capi makes the kubeconfig of a Cluster that has no control plane object.
openssl ecparam -name prime256v1 -genkey -noout -out "$work/tls.key"
openssl req -x509 -new -key "$work/tls.key" -subj /CN=kubernetes -days 365 -out "$work/tls.crt"
secret real-ca --namespace=default --from-file="$work/tls.crt" --from-file="$work/tls.key"

cat >"$work/control-plane" <<EOF
#cloud-config
write_files:
- {path: /etc/kubernetes/pki/ca.crt, encoding: b64, content: $(base64 "$work/tls.crt" | tr -d '\n')}
- {path: /etc/kubernetes/pki/ca.key, encoding: b64, permissions: "0600", content: $(base64 "$work/tls.key" | tr -d '\n')}
- path: /run/kubeadm/kubeadm.yaml
  content: |
    apiVersion: kubeadm.k8s.io/v1beta4
    kind: InitConfiguration
    bootstrapTokens: [{token: $TOKEN}]
    ---
    apiVersion: kubeadm.k8s.io/v1beta4
    kind: ClusterConfiguration
    clusterName: real
    kubernetesVersion: $VERSION
    controlPlaneEndpoint: "$api"
    networking: {podSubnet: 192.168.0.0/16}
runcmd:
- kubeadm init --config /run/kubeadm/kubeadm.yaml
- | # kind's images bring a network for Pods
  cni=/kind/manifests/default-cni.yaml
  if [ -f \$cni ]; then sed 's|{{ *.PodSubnet *}}|192.168.0.0/16|' \$cni | kubectl apply -f -; fi
EOF
cat >"$work/workers" <<EOF
#cloud-config
write_files:
- path: /run/kubeadm/kubeadm-join-config.yaml
  content: |
    apiVersion: kubeadm.k8s.io/v1beta4
    kind: JoinConfiguration
    discovery:
      bootstrapToken: {token: $TOKEN, apiServerEndpoint: "$api", unsafeSkipCAVerification: true}
runcmd:
- kubeadm join --config /run/kubeadm/kubeadm-join-config.yaml # waits for the API server
EOF
secret real-control-plane --namespace=default --from-file=value="$work/control-plane"
secret real-workers --namespace=default --from-file=value="$work/workers"

kubectl apply --server-side -f - <<EOF
apiVersion: cluster.x-k8s.io/v1beta2
kind: Machine
metadata:
  name: control-plane
  namespace: default
  labels: {cluster.x-k8s.io/cluster-name: real, cluster.x-k8s.io/control-plane: ""}
spec:
  clusterName: real
  version: $VERSION
  bootstrap: {dataSecretName: real-control-plane}
  infrastructureRef: {apiGroup: infrastructure.cluster.x-k8s.io, kind: DevMachine, name: control-plane}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta2
kind: DevMachine
metadata: {name: control-plane, namespace: default}
spec: {backend: {docker: {}}}
---
apiVersion: cluster.x-k8s.io/v1beta2
kind: MachinePool
metadata: {name: real-workers, namespace: default}
spec:
  clusterName: real
  replicas: 2
  template:
    spec:
      clusterName: real
      version: $VERSION
      bootstrap: {dataSecretName: real-workers}
      infrastructureRef: {apiGroup: infrastructure.cluster.x-k8s.io, kind: DevMachinePool, name: real-workers}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta2
kind: DevMachinePool
metadata: {name: real-workers, namespace: default}
spec: {backend: {docker: {}}}
EOF
kubectl wait machinepool real-workers --namespace=default --for='jsonpath={.status.readyReplicas}=2' --timeout=15m
kubectl get machines --namespace=default -o wide
