import { randomBytes, randomUUID } from 'node:crypto';
import pg from 'pg';
import { signedEvent } from '../../dev/signed-webhooks.js';
import type { SentOnce } from './sent-once.js';

const SECRET = `whsec_${randomBytes(24).toString('base64')}`;
const DOMAIN = 'agents.example.com';

/** Agents that get the mails in turns: each is allowed 60 an hour. */
const AGENTS = 5_000;

let sent = 0;

/** Events of the e-mail provider: each is a mail of an owner to one of many agents. */
export const emailEvents = {
  env: {
    EMAIL_API_KEY: 're_of_the_benchmark',
    EMAIL_WEBHOOK_SECRET: SECRET,
    EMAIL_DOMAIN: DOMAIN,
  },
  async prepare(ownerUrl: string): Promise<void> {
    const client = new pg.Client({ connectionString: ownerUrl });
    await client.connect();
    await client.query(
      `INSERT INTO users (id, email, email_verified_at, name, created_at, updated_at)
         VALUES ('bench', 'bench@example.org', now(), 'bench', now(), now());
       INSERT INTO agents (id, user_id, name, subdomain, host, plan, model, ai_provider, desired, status,
                           created_at, updated_at)
         SELECT 'agent-' || n, 'bench', 'agent ' || n, 'agent-' || n, 'host', 'solo', 'auto', 'openai',
                'stopped', 'stopped', now(), now() FROM generate_series(0, ${AGENTS - 1}) AS n`,
    );
    // As autovacuum does within a minute: without statistics, a mail's agent is found by reading all agents.
    await client.query('VACUUM ANALYZE users, agents');
    await client.end();
  },
  next(): SentOnce {
    const to = `agent-${sent++ % AGENTS}@${DOMAIN}`;
    const at = new Date();
    return signedEvent(
      SECRET,
      {
        type: 'email.received',
        created_at: at.toISOString(),
        data: {
          email_id: randomUUID(),
          created_at: at.toISOString(),
          from: 'A User <bench@example.org>',
          to: [to],
          bcc: [],
          cc: [],
          message_id: `<${randomUUID()}@mail.example.org>`,
          subject: 'A question about the shop',
          attachments: [],
        },
      },
      { at },
    );
  },
};
