import type { IncomingMessage, ServerResponse } from 'node:http';
import {
  APPROVAL_SECONDS,
  isOwnerTicket,
  OPENING_PATH,
  OWNER_COOKIE,
  ownerTicket,
} from '../../src/agents/address/owner-ticket.js';
import type { SecretBox } from '../../src/platform/secrets/secret-box.js';
import { Refusal } from './refusal.js';

/** The parts of an agent's address that recognize its owner. */
interface OwnersAddress {
  readonly agentId: string;
  readonly scheme: 'http' | 'https';
  readonly secrets: Pick<SecretBox, 'digest' | 'digests'>;
}

/** Reports whether a request is the dashboard's link. */
export const isOpening = ({ method, url = '' }: IncomingMessage): boolean =>
  method === 'GET' && url.split('?', 1)[0] === OPENING_PATH;

/** Sets a cookie in the browser that the owner opened, and redirects it to the Control UI. @throws Refusal */
export function openForOwner(
  { url = '' }: IncomingMessage,
  response: ServerResponse,
  { agentId, scheme, secrets }: OwnersAddress,
): void {
  const ticket = new URLSearchParams(url.split('?')[1]).get('ticket') ?? '';
  if (!isOwnerTicket(secrets, 'open', agentId, ticket)) throw Refusal.stale();
  const attributes = `Path=/; Max-Age=${APPROVAL_SECONDS}; HttpOnly; SameSite=Strict`;
  const cookie = `${OWNER_COOKIE}=${ownerTicket(secrets, 'browser', agentId)}; ${attributes}`;
  response.writeHead(303, {
    // The browser keeps the fragment, which has the token.
    location: '/',
    'set-cookie': scheme === 'https' ? `${cookie}; Secure` : cookie,
    'cache-control': 'no-store',
    'referrer-policy': 'no-referrer',
  });
  response.end();
}

/** Reports whether a request comes from the browser that the owner opened from the dashboard. */
export function isOwner(
  { headers }: IncomingMessage,
  secrets: OwnersAddress['secrets'],
  agentId: string,
): boolean {
  return (headers.cookie ?? '').split(';').some((pair) => {
    const [name = '', value = ''] = pair.split('=').map((part) => part.trim());
    return name === OWNER_COOKIE && isOwnerTicket(secrets, 'browser', agentId, value);
  });
}
