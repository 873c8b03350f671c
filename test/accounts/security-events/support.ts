import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import {
  EventSigner,
  eventClaims,
  type EventClaims,
} from '../../../dev/security-events/event-signer.js';

export const CLIENT_ID = '1234.apps.example.com';

/** An identity provider reduced to its configuration and keys for security events. */
export interface KeysServer {
  readonly issuer: string;
  readonly configurationUrl: string;
  /** Signers whose keys are published. */
  signers: EventSigner[];
  /** Handler that answers instead of the published keys, if set. */
  instead: RequestListener | undefined;
  /** Paths of the requests so far. */
  readonly asked: string[];
  /** Stops answering, like a server that is down. */
  stop(): Promise<void>;
  /** Answers again under the same address. */
  start(): Promise<void>;
}

const CONFIGURATION = '/.well-known/risc-configuration';
const KEYS = '/oauth2/v3/certs';

export async function keysServer(): Promise<KeysServer> {
  const asked: string[] = [];
  let port = 0;
  const server = createServer((request, response) => {
    const path = request.url ?? '';
    asked.push(path);
    if (path === KEYS && provider.instead) return provider.instead(request, response);
    const answer =
      path === CONFIGURATION
        ? { issuer: `${provider.issuer}/`, jwks_uri: `${provider.issuer}${KEYS}` }
        : { keys: provider.signers.map(({ published }) => published) };
    response.setHeader('content-type', 'application/json; charset=UTF-8');
    response.end(JSON.stringify(answer));
  });
  const start = () =>
    new Promise<void>((resolve) => {
      server.listen(port, '127.0.0.1', () => {
        ({ port } = server.address() as AddressInfo);
        resolve();
      });
    });
  await start();
  const provider: KeysServer = {
    issuer: `http://127.0.0.1:${port}`,
    configurationUrl: `http://127.0.0.1:${port}${CONFIGURATION}`,
    signers: [await EventSigner.create()],
    instead: undefined,
    asked,
    start,
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
  return provider;
}

/** Counts the requests for keys. */
export const timesAsked = ({ asked }: KeysServer): number =>
  asked.filter((path) => path === KEYS).length;

/** Returns the environment of a platform that trusts the provider. */
export const environmentOf = ({ configurationUrl, issuer }: KeysServer) => ({
  IDP_ISSUER_URL: issuer,
  IDP_CLIENT_ID: CLIENT_ID,
  IDP_RISC_CONFIGURATION_URL: configurationUrl,
});

/** Returns the claims of an event about a subject. */
export function claimsOf(
  { issuer }: Pick<KeysServer, 'issuer'>,
  type: Parameters<typeof eventClaims>[0]['type'],
  subject: Parameters<typeof eventClaims>[0]['subject'],
  more?: Readonly<Record<string, unknown>>,
): EventClaims {
  return eventClaims({ issuer, audience: CLIENT_ID, type, subject, ...(more && { more }) });
}

/** Returns a token with such claims, signed with the provider's first key. */
export async function tokenOf(
  provider: KeysServer,
  ...of: Parameters<typeof claimsOf> extends [unknown, ...infer Rest] ? Rest : never
): Promise<string> {
  const [signer] = provider.signers;
  if (!signer) throw new Error('the provider has no key');
  return signer.sign(claimsOf(provider, ...of));
}
