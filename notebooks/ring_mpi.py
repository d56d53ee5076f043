"""Lesson 03's ring all-reduce in MPI: every process brings 1,000,003 numbers, and each gets the sums.

Run with `mpirun -n 4 python ring_mpi.py`; needs the extra `mpi`.
"""

import numpy as np
from mpi4py import MPI

comm = MPI.COMM_WORLD
rank, n = comm.rank, comm.size
right, left = (rank + 1) % n, (rank - 1) % n

numbers = np.arange(1_000_003.0) * (rank + 1)
own = np.empty_like(numbers)
comm.Allreduce(numbers, own)  # MPI's own sums, to compare with
chunks = np.array_split(numbers, n)  # views
for step in range(n - 1):  # reduce-scatter: pass on, add what comes
    mine = chunks[(rank - step - 1) % n]
    arrived = np.empty_like(mine)
    comm.Sendrecv(chunks[(rank - step) % n], right, recvbuf=arrived, source=left)
    mine += arrived
for step in range(n - 1):  # all-gather: pass on, keep what comes
    comm.Sendrecv(chunks[(rank + 1 - step) % n], right, recvbuf=chunks[(rank - step) % n], source=left)

same = "equal to" if np.array_equal(numbers, own) else "DIFFERS from"
lines = comm.gather(f"rank {rank} of {n}: last number {numbers[-1]:.0f}, total {numbers.sum():.0f}, {same} MPI's own")
if rank == 0:
    print("\n".join(lines))
