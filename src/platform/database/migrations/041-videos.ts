import { ownedThrough, PLATFORM } from '../schema/policies.js';
import { protectTable, run, type Migration } from './migration.js';

const WEBHOOKS = `
   CREATE TABLE provider_webhooks (
     kind text NOT NULL CHECK (kind IN ('video', 'email')),
     id text NOT NULL,
     received_at timestamptz NOT NULL DEFAULT now(),
     PRIMARY KEY (kind, id)
   );
   CREATE INDEX provider_webhooks_received ON provider_webhooks (received_at);`;

const VIDEOS = `
   CREATE TABLE videos (
     id text PRIMARY KEY,
     user_id text NOT NULL REFERENCES users ON DELETE CASCADE,
     agent_id text,
     prompt text NOT NULL,
     duration integer,
     aspect_ratio text CHECK (aspect_ratio IN ('16:9', '9:16', '1:1')),
     status text NOT NULL DEFAULT 'queued'
       CHECK (status IN ('queued', 'processing', 'uploading', 'completed', 'failed', 'cancelled')),
     -- Set before the provider is asked: a request whose answer was lost is not repeated.
     asked_at timestamptz,
     -- The provider's id of the prediction.
     prediction_id text,
     -- True if the provider has reported a change that the run has not seen yet.
     hinted boolean NOT NULL DEFAULT false,
     -- True while the file of this row counts for MEDIA_LIMIT, also while it is being written.
     has_file boolean NOT NULL DEFAULT false,
     size bigint,
     content_type text,
     error text,
     -- Null as long as a run may have work left.
     settled_at timestamptz,
     due_at timestamptz NOT NULL DEFAULT now(),
     created_at timestamptz NOT NULL DEFAULT now(),
     completed_at timestamptz,
     FOREIGN KEY (agent_id, user_id) REFERENCES agents (id, user_id) ON DELETE SET NULL (agent_id)
   );
   CREATE UNIQUE INDEX videos_prediction_key ON videos (prediction_id);
   CREATE INDEX videos_user_created ON videos (user_id, created_at, id);
   CREATE INDEX videos_agent ON videos (agent_id, user_id) WHERE agent_id IS NOT NULL;
   CREATE INDEX videos_due ON videos (due_at) WHERE settled_at IS NULL;
   CREATE INDEX videos_file ON videos (completed_at, id) WHERE has_file = true;
   CREATE INDEX videos_settled ON videos (settled_at) WHERE settled_at IS NOT NULL;

   -- Videos of a UTC day, also those whose account was deleted: the operator pays for them.
   CREATE TABLE video_days (
     -- The day, as YYYY-MM-DD.
     id text PRIMARY KEY,
     count integer NOT NULL
   );

   CREATE TRIGGER videos_told AFTER INSERT ON videos
     FOR EACH STATEMENT EXECUTE FUNCTION tell_of_row();
   -- Of the provider's reports and of cancellations: their rows are due at once.
   CREATE TRIGGER videos_changes_told AFTER UPDATE OF hinted, status ON videos
     FOR EACH ROW WHEN (NEW.hinted AND NOT OLD.hinted
                        OR NEW.status = 'cancelled' AND OLD.status <> NEW.status)
     EXECUTE FUNCTION tell_of_row();`;

/** Events of providers, and videos. */
export const migration: Migration = async (context) => {
  await run(context, WEBHOOKS);
  await protectTable(context, 'provider_webhooks', 'SELECT, INSERT, DELETE', PLATFORM);
  await run(context, VIDEOS);
  const all = 'SELECT, INSERT, UPDATE, DELETE';
  await protectTable(context, 'videos', all, ownedThrough('user_id'));
  await protectTable(context, 'video_days', all, PLATFORM);
};
