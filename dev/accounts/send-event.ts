import { EVENT_TYPES } from '../../src/accounts/security-events/event-types.js';
import { StartFailure } from '../failure.js';
import { eventClaims, EventSigner } from '../security-events/event-signer.js';
import { readKept } from './kept-accounts.js';
import { CLIENT_ID, issuerOf } from './stand-ins.js';

const TIMEOUT_MS = 30_000;

/**
 * Tells the platform of a security event, signed as the stand-in of the identity provider signs them.
 *
 * @param asked the event's type, the person's address at the provider, and a reason where there is one.
 * @throws StartFailure when it is not taken.
 */
export async function sendEvent(
  { dataDir, webUrl }: { readonly dataDir: string; readonly webUrl: string },
  [type = '', email, reason]: readonly string[],
): Promise<void> {
  if (!isEventType(type) || email === undefined) {
    const types = Object.keys(EVENT_TYPES).join(', ');
    throw new StartFailure(`Say which event, and whose address. Events are ${types}.`);
  }
  const kept = readKept(dataDir);
  if (!kept) {
    throw new StartFailure(
      `No identity provider has run on ${dataDir}: start npm run dev:accounts, or set DATA_DIR as the platform has it.`,
    );
  }
  const claims = eventClaims({
    issuer: issuerOf(kept),
    audience: CLIENT_ID,
    type,
    subject: { sub: email, email },
    ...(reason !== undefined && { more: { reason } }),
  });
  const signer = await EventSigner.of(kept.eventKey);
  const response = await fetch(`${webUrl}/api/security/risc`, {
    method: 'POST',
    body: await signer.sign(claims),
    redirect: 'error',
    signal: AbortSignal.timeout(TIMEOUT_MS),
  }).catch((cause: unknown) => {
    throw new StartFailure(
      `No platform answers at ${webUrl}: start npm run dev:accounts, or set WEB_PORT or WEB_URL as the platform has it.`,
      { cause },
    );
  });
  const said = await response.text();
  if (response.status !== 202) {
    throw new StartFailure(`The platform did not take the event: ${response.status} ${said}`);
  }
}

function isEventType(name: string): name is keyof typeof EVENT_TYPES {
  return Object.hasOwn(EVENT_TYPES, name);
}
