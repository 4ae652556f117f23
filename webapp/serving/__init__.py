"""`manage.py serve`: one supervisor that starts, watches and ends everything else."""
