"""MachinePool: a Machine for every instance that the pool's infrastructure reports."""
