"""Rows are seen only in the scope of their owner, whatever the query says.

A connection tells its scope in the setting `vitrine.scope`: `user:<id>` or `system`. FORCE makes the
policies bind the tables' owner too, because one role both migrates and serves. What belongs to a
conversation is visible exactly when the conversation is, so sharing will have one place to change.
"""

from django.db import migrations

_VISIBLE = """
    current_setting('vitrine.scope', true) = 'system'
    OR current_setting('vitrine.scope', true) = 'user:' || owner_id
"""
_PARTS = {
    "chat_message": "SELECT 1 FROM chat_conversation c WHERE c.id = conversation_id",
    "chat_generation": "SELECT 1 FROM chat_conversation c WHERE c.id = conversation_id",
    "chat_generationevent": "SELECT 1 FROM chat_generation g WHERE g.id = generation_id",
}


def _protect(table: str, condition: str) -> migrations.RunSQL:
    return migrations.RunSQL(
        sql=f"""
            ALTER TABLE {table} ENABLE ROW LEVEL SECURITY;
            ALTER TABLE {table} FORCE ROW LEVEL SECURITY;
            CREATE POLICY own_rows ON {table} USING ({condition}) WITH CHECK ({condition});
        """,
        reverse_sql=f"""
            DROP POLICY own_rows ON {table};
            ALTER TABLE {table} NO FORCE ROW LEVEL SECURITY;
            ALTER TABLE {table} DISABLE ROW LEVEL SECURITY;
        """,
    )


class Migration(migrations.Migration):
    dependencies = [("chat", "0001_initial")]

    operations = [
        _protect("chat_conversation", _VISIBLE),
        *(_protect(table, f"EXISTS ({query})") for table, query in _PARTS.items()),
    ]
