import { run, type Migration } from './migration.js';

/** Indexes that find no row twice. */
export const migration: Migration = (context) =>
  run(
    context,
    `-- Messages between a user's own agents, which are most, are found by their sender alone.
     CREATE INDEX bus_messages_from_others ON bus_messages (to_user, id)
       WHERE from_user <> to_user;
     DROP INDEX bus_messages_to_user;`,
  );
