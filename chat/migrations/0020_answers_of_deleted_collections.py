from django.db import migrations

# Also those that the scope of who deletes or unshares does not see: a reader's own.
_FORWARD = """
CREATE OR REPLACE FUNCTION chat_drop_cached_answers() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    scope text := coalesce(current_setting('vitrine.scope', true), '');
BEGIN
    PERFORM set_config('vitrine.scope', 'system', true);
    DELETE FROM chat_cachedanswer
        WHERE collections @> ARRAY[CASE WHEN TG_OP = 'DELETE' THEN OLD.id ELSE NEW.id END];
    PERFORM set_config('vitrine.scope', scope, true);
    RETURN NULL;
END
$$;
CREATE TRIGGER drop_cached_answers_of_deleted AFTER DELETE ON retrieval_collection
    FOR EACH ROW EXECUTE FUNCTION chat_drop_cached_answers();
"""
_BACK = """
DROP TRIGGER drop_cached_answers_of_deleted ON retrieval_collection;
CREATE OR REPLACE FUNCTION chat_drop_cached_answers() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM chat_cachedanswer WHERE collections @> ARRAY[NEW.id];
    RETURN NULL;
END
$$;
"""


class Migration(migrations.Migration):
    dependencies = [
        ("chat", "0019_message_vectors"),
        ("retrieval", "0005_reembedding"),
    ]

    operations = [migrations.RunSQL(_FORWARD, _BACK)]
