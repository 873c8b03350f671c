import { EVENT_TYPES } from '../../src/accounts/security-events/event-types.js';
import { StartFailure } from '../failure.js';
import { eventClaims, EventSigner } from '../security-events/event-signer.js';
import { readKept } from './kept-accounts.js';
import { CLIENT_ID, issuerOf } from './stand-ins.js';

const TIMEOUT_MS = 30_000;

/**
 * Sends a security event to the platform, signed like those of the stand-in identity provider.
 *
 * @param asked the event's type, the person's address at the provider, and a reason if any.
 * @throws StartFailure when the platform does not accept it.
 */
export async function sendEvent(
  { dataDir, webUrl }: { readonly dataDir: string; readonly webUrl: string },
  [type = '', email, reason]: readonly string[],
): Promise<void> {
  if (!isEventType(type) || email === undefined) {
    const types = Object.keys(EVENT_TYPES).join(', ');
    throw new StartFailure(`Name an event and an address. Events are ${types}.`);
  }
  const kept = readKept(dataDir);
  if (!kept) {
    throw new StartFailure(
      `No identity provider has run on ${dataDir}: start npm run dev:accounts, or set DATA_DIR to the platform's data folder.`,
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
      `No platform answers at ${webUrl}: start npm run dev:accounts, or set WEB_PORT or WEB_URL to the platform's.`,
      { cause },
    );
  });
  const said = await response.text();
  if (response.status !== 202) {
    throw new StartFailure(`The platform did not accept the event: ${response.status} ${said}`);
  }
}

function isEventType(name: string): name is keyof typeof EVENT_TYPES {
  return Object.hasOwn(EVENT_TYPES, name);
}
