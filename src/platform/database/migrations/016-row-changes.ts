import { run, type Migration } from './migration.js';

/** Tables that notify of new rows, each with the column whose changes they also notify of, if any. */
const NOTIFYING: Readonly<Record<string, string | undefined>> = {
  mails: undefined,
  risc_events: undefined,
  account_deletions: undefined,
  payments: 'state',
  clones: 'state',
  royalty_splits: 'status',
  payment_sessions: 'state',
};

/** Notifications on the channel `rows`, which name the table alone: listeners read the rows themselves. */
export const migration: Migration = async (context) => {
  await run(
    context,
    `CREATE FUNCTION tell_of_row() RETURNS trigger
       LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS
       $$BEGIN
         PERFORM pg_notify('rows', TG_TABLE_NAME);
         RETURN NULL;
       END$$;`,
  );
  for (const [table, column] of Object.entries(NOTIFYING)) {
    await run(
      context,
      `CREATE TRIGGER ${table}_told AFTER INSERT ON ${table}
         FOR EACH STATEMENT EXECUTE FUNCTION tell_of_row();`,
    );
    if (column === undefined) continue;
    await run(
      context,
      `CREATE TRIGGER ${table}_changes_told AFTER UPDATE OF ${column} ON ${table}
         FOR EACH ROW WHEN (OLD.${column} IS DISTINCT FROM NEW.${column})
         EXECUTE FUNCTION tell_of_row();`,
    );
  }
};
