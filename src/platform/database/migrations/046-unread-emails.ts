import { run, type Migration } from './migration.js';

/** Indexes of mails that are not read yet, and of mails that asked nobody: both are bounded. */
export const migration: Migration = (context) =>
  run(
    context,
    `CREATE INDEX agent_emails_unread ON agent_emails (agent_id) WHERE status = 'received';
     CREATE INDEX agent_emails_unasked ON agent_emails (agent_id, received_at)
       WHERE settled_at IS NOT NULL AND conversation IS NULL;`,
  );
