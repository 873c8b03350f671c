import { AgentEmails } from '../../../src/agents/email/agent-emails.js';
import { Resend } from '../../../src/agents/email/resend.js';
import { walletSite, type WalletSite } from '../../money/wallets/support.js';
import type { Answer } from '../../support/http.js';
import { newTaskAgent } from '../tasks/task-lab.js';
import { ResendStandIn, type StoredMail } from '../../../dev/email/resend-stand-in.js';

/** A mail's row. */
export interface EmailRow {
  readonly id: string;
  readonly status: string;
  readonly reason: string | null;
  readonly sender: string;
  readonly conversation: string | null;
  readonly body: string | null;
}

/** The web API with a stand-in of the e-mail provider, and one user with an agent. */
export interface EmailSite extends WalletSite {
  readonly resend: ResendStandIn;
  readonly emails: AgentEmails;
  newOwner(options?: { readonly port?: number }): Promise<EmailOwner>;
  deliver(event: unknown, how?: Parameters<ResendStandIn['signed']>[1]): Promise<Answer>;
  rows(owner: EmailOwner): Promise<EmailRow[]>;
}

/** A user with a verified address, and an agent that counts as running. */
export interface EmailOwner {
  readonly userId: string;
  readonly agentId: string;
  readonly host: string;
  /** The owner's address, and the agent's. */
  readonly address: string;
  readonly agent: string;
  /** Lets the provider receive a mail of the owner to the agent, and returns the event. */
  write(mail?: Partial<StoredMail>): ReturnType<ResendStandIn['receive']>;
}

export async function emailSite(
  env: Readonly<Record<string, string | undefined>> = {},
): Promise<EmailSite> {
  const resend = await ResendStandIn.open();
  const site = await walletSite({ ...resend.env, ...env });
  const { settings } = site.dependencies;
  const { db } = site.database;
  const emails = new AgentEmails({
    database: db,
    provider: new Resend(settings.email),
    settings: { ...settings.email, requiresProof: true },
    admins: settings.accounts,
  });
  return {
    ...site,
    resend,
    emails,
    async newOwner(options) {
      const ref = await newTaskAgent(site.database, options);
      const [user] = await db
        .asPlatform()
        .query<{ email: string }>(
          'UPDATE users SET email_verified_at = now() WHERE id = $userId RETURNING email',
          { userId: ref.userId },
        );
      if (!user) throw new TypeError('the user is missing');
      const agent = `${ref.agentId}@${resend.domain}`;
      const usual = { from: `Ada <${user.email}>`, to: [agent] };
      return {
        ...ref,
        address: user.email,
        agent,
        write: (mail) => resend.receive({ ...usual, ...mail }),
      };
    },
    deliver: (event, how) =>
      site.web(undefined, 'POST', '/api/webhooks/email', resend.signed(event, how)),
    rows: ({ agentId }) =>
      db.asPlatform().query<EmailRow>(
        `SELECT id, status, reason, sender, conversation, body FROM agent_emails
          WHERE agent_id = $agentId ORDER BY received_at, id`,
        { agentId },
      ),
    async close() {
      await site.close();
      resend.close();
    },
  };
}
