"""A stand-alone program: become the right process, then exec a server.

    python -I -S launcher.py PARENT_PID IDENTITY DEATH_SIGNAL COMMAND ...
    python -I -S launcher.py PARENT_PID IDENTITY DEATH_SIGNAL --probe PATH ...

It runs alone because a fork hook would have to run between fork and exec of a process that may
have threads. The server gets DEATH_SIGNAL as soon as PARENT_PID is gone. IDENTITY is

- `self`: as it is, for a caller that is not root;
- `namespace`: in a user namespace of one user, `nobody`, who is root outside. Postgres, which
  refuses to run as root, is content, and every file stays root's;
- `account:UID:GID`: as that user, with the one capability to pass by file permissions, for
  containers that forbid user namespaces. No directory above the data has to be opened for it.

A probe exits with 0 if the identity can be taken and gets through to every path.
"""

import ctypes
import os
import sys

CANNOT_BECOME = 97
NOBODY = 65534

_PR_SET_PDEATHSIG = 1
_PR_SET_NAME = 15
_PR_SET_SECUREBITS = 28
_SECBIT_NO_SETUID_FIXUP = 1 << 2
_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_RAISE = 47, 2
_CAP_DAC_OVERRIDE = 1
_CAPABILITY_VERSION_3 = 0x20080522
_CLONE_NEWUSER = 0x10000000

_libc = ctypes.CDLL(None, use_errno=True)


def main(arguments: list[str]) -> None:
    parent_pid, identity, death_signal, *command = arguments
    try:
        become(identity)
    except OSError as error:
        sys.stderr.write(f"cannot become {identity}: {error}\n")
        sys.exit(CANNOT_BECOME)
    if command[0] == "--probe":
        sys.exit(0 if all(map(can_enter, command[1:])) else CANNOT_BECOME)
    # After `become`: the kernel forgets the death signal when credentials change.
    die_with_parent(int(parent_pid), int(death_signal))
    os.execv(command[0], command)  # noqa: S606


def become(identity: str) -> None:
    """Raises OSError where the kernel or the container's policy forbids it."""
    if identity == "namespace":
        enter_user_namespace()
    elif identity.startswith("account:"):
        _, uid, gid = identity.split(":")
        become_account(int(uid), int(gid))


def enter_user_namespace() -> None:
    uid, gid = os.geteuid(), os.getegid()
    _check(_libc.unshare(_CLONE_NEWUSER))
    _write("/proc/self/setgroups", "deny")
    _write("/proc/self/uid_map", f"{NOBODY} {uid} 1")
    _write("/proc/self/gid_map", f"{NOBODY} {gid} 1")


def become_account(uid: int, gid: int) -> None:
    # Capabilities outlive the change of user, and access(2) counts them: Postgres asks it whether it
    # may run its own programs, which lie below /root where root installs.
    _check(_libc.prctl(_PR_SET_SECUREBITS, _SECBIT_NO_SETUID_FIXUP, 0, 0, 0))
    os.setgroups([])
    os.setresgid(gid, gid, gid)
    os.setresuid(uid, uid, uid)
    mask = 1 << _CAP_DAC_OVERRIDE
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
    data = (ctypes.c_uint32 * 6)(mask, mask, mask, 0, 0, 0)  # effective, permitted, inheritable
    _check(_libc.capset(header, data))
    _check(_libc.prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_RAISE, _CAP_DAC_OVERRIDE, 0, 0))


def can_enter(path: str) -> bool:
    """Whether a directory can be entered, or a file read and run."""
    try:
        os.stat(os.path.join(path, ".") if os.path.isdir(path) else path)
    except OSError:
        return False
    return os.access(path, os.R_OK | os.X_OK)


def die_with_parent(parent_pid: int, death_signal: int) -> None:
    """Ask the kernel for `death_signal` when the parent ends; exit if it already has."""
    _check(_libc.prctl(_PR_SET_PDEATHSIG, death_signal, 0, 0, 0))
    if os.getppid() != parent_pid:
        sys.exit(f"parent {parent_pid} has ended")


def name_process(name: str) -> None:
    """What `ps` and `top` show; 15 characters at most."""
    _check(_libc.prctl(_PR_SET_NAME, name.encode(), 0, 0, 0))


def _check(result: int) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def _write(path: str, text: str) -> None:
    with open(path, "w") as file:
        file.write(text)


if __name__ == "__main__":
    main(sys.argv[1:])
