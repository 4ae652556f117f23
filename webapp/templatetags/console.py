"""`{% as_in_menu parts as places %}`: the console's breadcrumbs in the words of its menu."""

from django import template

from webapp import console_menu

register = template.Library()
register.simple_tag(console_menu.as_in_menu)
