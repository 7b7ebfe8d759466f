"""MachineHealthCheck: finds Machines that are not well, and has whoever owns them replace them."""
