import { timingSafeEqual } from 'node:crypto';
import type { SecretBox } from '../../platform/secrets/secret-box.js';

/** The cookie by which the agent's address recognizes the browser that the owner opened from the dashboard. */
export const OWNER_COOKIE = 'agent-owner';

/** Seconds from the dashboard to the agent's address, and then for the browser's approval there. */
const TICKET_SECONDS = 60;
export const APPROVAL_SECONDS = 10 * 60;

/** `open` is in the address that the dashboard opens; `browser` is the cookie that it is exchanged for. */
type TicketUse = 'open' | 'browser';

const LIFETIMES: Readonly<Record<TicketUse, number>> = {
  open: TICKET_SECONDS,
  browser: APPROVAL_SECONDS,
};

const contextOf = (use: TicketUse): string => `agent-owner-ticket/${use}`;

/** Makes a ticket: the platform's short-lived statement that the owner of this agent opened its address. */
export function ownerTicket(
  secrets: Pick<SecretBox, 'digest'>,
  use: TicketUse,
  agentId: string,
  now = Date.now(),
): string {
  const until = Math.floor(now / 1_000) + LIFETIMES[use];
  return `${until}.${secrets.digest(`${agentId} ${until}`, contextOf(use))}`;
}

/** The path of an agent's address that exchanges a ticket for the owner's cookie. */
export const OPENING_PATH = '/-/open';

/** Returns the path, with a ticket, by which the dashboard opens an agent's address. */
export const openingPath = (secrets: Pick<SecretBox, 'digest'>, agentId: string): string =>
  `${OPENING_PATH}?ticket=${ownerTicket(secrets, 'open', agentId)}`;

/** Reports whether a ticket is valid for this use and this agent. */
export function isOwnerTicket(
  secrets: Pick<SecretBox, 'digests'>,
  use: TicketUse,
  agentId: string,
  ticket: string,
  now = Date.now(),
): boolean {
  const [, digits = '', proof = ''] = /^(\d{1,12})\.([0-9a-f]{64})$/.exec(ticket) ?? [];
  if (proof === '' || Number(digits) * 1_000 <= now) return false;
  return secrets
    .digests(`${agentId} ${digits}`, contextOf(use))
    .some((expected) => timingSafeEqual(Buffer.from(proof), Buffer.from(expected)));
}
