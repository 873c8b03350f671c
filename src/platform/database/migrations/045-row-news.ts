import { run, type Migration } from './migration.js';

/** Tables whose new rows somebody waits for, and what of a row is told of when it changes. */
const TOLD: Readonly<Record<string, string | undefined>> = {
  mails: undefined,
  risc_events: undefined,
  account_deletions: undefined,
  payments: 'state',
  clones: 'state',
  royalty_splits: 'status',
  payment_sessions: 'state',
};

/** Whoever listens hears of rows as soon as they are there: which ones they are, everybody looks up. */
export const migration: Migration = {
  async up(context) {
    await run(
      context,
      `CREATE FUNCTION tell_of_row() RETURNS trigger
         LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS
         $$BEGIN
           PERFORM pg_notify('rows', TG_TABLE_NAME);
           RETURN NULL;
         END$$;`,
    );
    for (const [table, column] of Object.entries(TOLD)) {
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
  },

  async down(context) {
    await run(context, 'DROP FUNCTION tell_of_row() CASCADE;');
  },
};
