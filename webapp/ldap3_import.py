"""ldap3, without the warnings of its import: it names things of pyasn1 as they were called before."""

import warnings

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    import ldap3
    from ldap3.operation.search import parse_filter
    from ldap3.utils.conv import escape_bytes, escape_filter_chars
    from ldap3.utils.dn import parse_dn

__all__ = ["escape_bytes", "escape_filter_chars", "ldap3", "parse_dn", "parse_filter"]
