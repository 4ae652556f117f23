"""Provisioning by an organisation's directory: SCIM 2.0 (RFC 7643, RFC 7644) at /scim/v2/.

A directory (Okta, Microsoft Entra, Authentik) makes, changes, disables and groups the accounts of its
people. It holds one token of the operator's, is no person here, and has no right that is not written
down in `people` and `groups`. All but `configuration` and `errors` is imported only where it is on:
scim2_models alone takes longer to import than the rest of the shell.
"""
