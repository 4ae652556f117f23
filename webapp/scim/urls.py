"""The addresses below /scim/v2/."""

from django.urls import path

from webapp.scim import discovery, views
from webapp.scim.door import endpoint

_NOT_THERE = dict.fromkeys(("GET", "POST", "PUT", "PATCH", "DELETE"), discovery.not_there)
_NOT_POSSIBLE = dict.fromkeys(_NOT_THERE, discovery.not_possible)

urlpatterns = [
    path("ServiceProviderConfig", endpoint(GET=discovery.service_provider_config)),
    path("ResourceTypes", endpoint(GET=discovery.resource_types)),
    path("ResourceTypes/<str:key>", endpoint(GET=discovery.resource_type)),
    path("Schemas", endpoint(GET=discovery.schemas)),
    path("Schemas/<str:key>", endpoint(GET=discovery.schema)),
    path("Users", endpoint(GET=views.list_users, POST=views.create_user)),
    path("Users/.search", endpoint(POST=views.search_users)),
    path(
        "Users/<str:key>",
        endpoint(
            GET=views.get_user,
            PUT=views.replace_user,
            PATCH=views.patch_user,
            DELETE=views.delete_user,
        ),
    ),
    path("Groups", endpoint(GET=views.list_groups, POST=views.create_group)),
    path("Groups/.search", endpoint(POST=views.search_groups)),
    path(
        "Groups/<str:key>",
        endpoint(
            GET=views.get_group,
            PUT=views.replace_group,
            PATCH=views.patch_group,
            DELETE=views.delete_group,
        ),
    ),
    path(".search", endpoint(POST=discovery.not_possible)),
    path("Bulk", endpoint(**_NOT_POSSIBLE)),
    path("Me", endpoint(**_NOT_POSSIBLE)),
    path("<path:rest>", endpoint(**_NOT_THERE)),
]
