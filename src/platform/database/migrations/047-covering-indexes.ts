import { run, type Migration } from './migration.js';

/** Indexes that find no row twice, or that have all columns of a report. */
export const migration: Migration = (context) =>
  run(
    context,
    `-- Messages between a user's own agents, which are most, are found by their sender alone.
     CREATE INDEX bus_messages_from_others ON bus_messages (to_user, id)
       WHERE from_user <> to_user;
     DROP INDEX bus_messages_to_user;

     -- With the owner, whom the policy reads: without it, every figure of chats reads the texts as well.
     DROP INDEX messages_answers;
     CREATE INDEX messages_answers ON messages (agent_id, created_at, status, took_ms, user_id)
       WHERE role = 'assistant';`,
  );
