import { setTimeout as delay } from 'node:timers/promises';
import { say } from '../../dev/email/resend-stand-in.js';
import { deliverEvent } from '../../dev/signed-webhooks.js';
import { answerEmailId } from '../../workflows/ids.js';
import { Random } from '../support/random.js';
import type { WorkPlan } from './work-plan.js';
import { stillRuns, type Work, type WorkSite } from './work.js';

/** Mails of a round, so that one kill interrupts several steps. */
const MAILS = 4;

/** Maximum milliseconds until the provider answers that a mail is sent. */
const SENDING_MS = 1_500;

/** Maximum number of failures of one call, such as the sending of one mail. */
const MAX_FAILURES = 3;

/** Milliseconds for the deliveries of events. */
const DELIVERY_MS = 120_000;

/** The reason of a mail whose turn was lost with the worker. */
const LOST = /answer was lost when the platform restarted/;

interface MailRow {
  readonly id: string;
  readonly messageId: string;
  readonly status: string;
  readonly reason: string | null;
}

/**
 * Sends mails of the owner to an agent, while the provider is slow and loses answers: no mail is answered
 * twice.
 */
export async function requestEmails(site: WorkSite, key: string, plan: WorkPlan): Promise<Work> {
  const { agents, database, email, resend, webUrl } = site;
  sendBadly(site, new Random(plan.seed));
  const found = await database
    .asPlatform()
    .query<{ subdomain: string }>('SELECT subdomain FROM agents WHERE id = ANY ($agents)', {
      agents,
    });
  // The agents alternate, because only 60 mails an hour are answered for each agent.
  const events = Array.from({ length: MAILS }, (_, n) => {
    const to = [`${found[n % found.length]?.subdomain}@${resend.domain}`];
    const text = `Is the shop open? (${key}-${n})`;
    return resend.receive({ from: `Owner <${email}>`, to, text });
  });
  const messageIds = events.map(({ data }) => data.message_id);
  const signal = AbortSignal.timeout(DELIVERY_MS);
  await Promise.all(
    events.map((event) =>
      deliverEvent(`${webUrl}/api/webhooks/email`, resend.signed(event), signal),
    ),
  );
  const rows = () =>
    database.asPlatform().query<MailRow>(
      `SELECT id, message_id AS "messageId", status, reason FROM agent_emails
        WHERE message_id = ANY ($messageIds) ORDER BY status`,
      { messageIds },
    );
  const isOpen = ({ status }: MailRow) => /^(received|asking|answering)$/.test(status);
  return {
    async end() {
      const all = await rows();
      const hasEnded = all.length >= MAILS && !all.some(isOpen);
      return hasEnded ? all.map(({ status }) => status).join() : undefined;
    },
    async problems() {
      const all = await rows();
      const runs = await Promise.all(all.map(({ id }) => stillRuns(site, answerEmailId(id))));
      return [
        ...(all.length === MAILS ? [] : [`${MAILS} mails have ${all.length} rows`]),
        ...all.flatMap((row) => problemsOf(row, site, plan)),
        ...runs.flat(),
      ];
    },
  };
}

function problemsOf(
  { messageId, reason, status }: MailRow,
  { resend }: WorkSite,
  { part }: WorkPlan,
): string[] {
  const answers = resend.sent.filter(({ headers }) => headers['In-Reply-To'] === messageId).length;
  const mayBeLost = part === 'worker' && status === 'failed' && LOST.test(reason ?? '');
  if (mayBeLost ? answers === 0 : status === 'answered' && answers === 1) return [];
  return [`a mail is ${status} (${reason}), with ${answers} answers`];
}

/** Makes the provider send slowly, and lose a third of its answers and refuse a sixth of its calls. */
function sendBadly({ resend }: WorkSite, random: Random): void {
  const failures = new Map<string, number>();
  // The platform waits twice as long after each failure, so that many would outlast the round.
  const mayFail = (call: string) => {
    const before = failures.get(call) ?? 0;
    failures.set(call, before + 1);
    return before < MAX_FAILURES;
  };
  resend.loss = (response, call) => {
    if (!random.isOneIn(3) || !mayFail(call)) return false;
    void delay(random.below(SENDING_MS)).then(() => response.destroy());
    return true;
  };
  resend.fault = (response, call) => {
    if (!random.isOneIn(6) || !mayFail(call)) return false;
    say(response, 503, {});
    return true;
  };
}
