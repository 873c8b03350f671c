import { ownedThrough, PLATFORM } from '../schema/policies.js';
import { protectTable, run, type Migration } from './migration.js';

/** Notifications to operators: an outbox, and the state of each in each channel. */
export const migration: Migration = async (context) => {
  await run(
    context,
    `-- Written in the transaction of its cause. Without an agent it is about the platform itself.
     CREATE TABLE pending_notifications (
       id text PRIMARY KEY,
       agent_id text,
       user_id text NOT NULL,
       event jsonb NOT NULL,
       due_at timestamptz NOT NULL DEFAULT now(),
       FOREIGN KEY (agent_id, user_id) REFERENCES agents (id, user_id) ON DELETE CASCADE
     );
     CREATE INDEX pending_notifications_due ON pending_notifications (due_at);

     -- No foreign key to agents: a notification outlives the agent that it is about.
     CREATE TABLE notifications (
       id text NOT NULL,
       channel text NOT NULL CHECK (channel IN ('telegram', 'discord')),
       agent_id text NOT NULL,
       user_id text NOT NULL DEFAULT '',
       event text NOT NULL,
       status text NOT NULL CHECK (status IN ('waiting', 'sending', 'sent', 'repeated', 'dropped')),
       created_at timestamptz NOT NULL,
       due_at timestamptz NOT NULL,
       attempted_at timestamptz,
       settled_at timestamptz,
       PRIMARY KEY (id, channel)
     );
     CREATE INDEX notifications_channel_due ON notifications (channel, due_at);
     CREATE INDEX notifications_channel_status ON notifications (channel, status, settled_at);
     CREATE INDEX notifications_agent ON notifications (agent_id, created_at);`,
  );
  const every = 'SELECT, INSERT, UPDATE, DELETE';
  await protectTable(context, 'pending_notifications', every, ownedThrough('user_id'));
  await protectTable(context, 'notifications', every, PLATFORM);
};
