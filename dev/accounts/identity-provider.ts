import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { exportJWK, generateKeyPair, type CryptoKey, type JWK, type JWTPayload } from 'jose';
import { Provider, type KoaContextWithOIDC } from 'oidc-provider';
import { personOf, personPage } from './person-page.js';

/** Claims of the provider about a person. */
export interface Person {
  readonly email?: string | undefined;
  readonly email_verified?: unknown;
  readonly name?: string | undefined;
}

/** Forged answers that tests put in the place of the provider's own. */
export interface Forging {
  /** Replacement for the ID token that the provider made. */
  idToken?: ((claims: JWTPayload) => Promise<string> | string) | undefined;
  /** Overrides for the provider's discovery document. */
  discovery?: Readonly<Record<string, unknown>> | undefined;
  /** Published signing keys, instead of the provider's own. */
  keys?: readonly JWK[] | undefined;
  /** HTTP status with which every request is answered, if set. */
  down?: number | undefined;
}

export interface TestIdentityProvider {
  readonly issuerUrl: string;
  readonly clientId: string;
  readonly clientSecret: string;
  /** The signing key. */
  readonly key: {
    readonly kid: string;
    readonly privateKey: CryptoKey;
    readonly publicKey: CryptoKey;
  };
  readonly forging: Forging;
  /** Requested paths, in order. */
  readonly asked: readonly string[];
  /** Tokens that the provider has issued. */
  readonly issued: readonly string[];
  /** Values of `token` in revocation requests. */
  readonly revoked: readonly string[];
  /** Signs a person in and consents, as a browser would. Returns the URL of the redirect that follows. */
  consent(authorizationUrl: string, subject: string, person: Person): Promise<URL>;
  close(): Promise<void>;
}

const KID = 'of-the-provider';

/** Path of the document that names the signing keys of security events. */
export const RISC_CONFIGURATION = '/.well-known/risc-configuration';
const EVENT_KEYS = '/event-keys';

/**
 * Starts a certified OpenID provider in this process, over plain HTTP on loopback.
 *
 * @param redirectUri the URL to which browsers may be redirected.
 * @param options.inUserinfo true if only the userinfo endpoint describes people.
 * @param options.port any free port by default.
 * @param options.eventKeys keys that sign the provider's security events.
 */
export async function startIdentityProvider(
  redirectUri: string,
  {
    inUserinfo = false,
    port: wanted = 0,
    eventKeys = [],
  }: {
    readonly inUserinfo?: boolean;
    readonly port?: number;
    readonly eventKeys?: readonly JWK[];
  } = {},
): Promise<TestIdentityProvider> {
  const { privateKey, publicKey } = await generateKeyPair('RS256', { extractable: true });
  const jwk = { ...(await exportJWK(privateKey)), kid: KID, alg: 'RS256', use: 'sig' };
  const [clientId, clientSecret] = ['the-platform', 'secret-of-the-platform-at-the-provider'];
  const people = new Map<string, Person>();
  const forging: Forging = {};
  const asked: string[] = [];
  const revoked: string[] = [];
  const issued: string[] = [];

  const server = createServer();
  await new Promise<void>((resolve) => server.listen(wanted, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo; // TCP: never a string.
  const issuerUrl = `http://127.0.0.1:${port}`;
  const provider = new Provider(issuerUrl, {
    clients: [
      {
        client_id: clientId,
        client_secret: clientSecret,
        redirect_uris: [redirectUri],
        grant_types: ['authorization_code', 'refresh_token'],
        token_endpoint_auth_method: 'client_secret_post',
      },
    ],
    // The provider's types list other members of a key than the library that makes the key.
    jwks: { keys: [jwk] },
    cookies: { keys: ['a key of tests'] },
    claims: { email: ['email', 'email_verified'], profile: ['name'] },
    conformIdTokenClaims: inUserinfo,
    features: {
      devInteractions: { enabled: false },
      revocation: { enabled: true, allowedPolicy: () => true },
    },
    // Set explicitly, because the provider warns about its defaults.
    ttl: {
      AccessToken: 600,
      Grant: 600,
      IdToken: 600,
      Interaction: 600,
      RefreshToken: 600,
      Session: 600,
    },
    interactions: { url: (_, { uid }) => `/interaction/${uid}` },
    findAccount: (_, sub) => ({
      accountId: sub,
      claims: () => ({ sub, ...people.get(sub) }),
    }),
  });

  /**
   * Returns the person that a test names, or who was entered on the page; undefined while the page is
   * only shown.
   */
  async function whoIsThere(ctx: KoaContextWithOIDC): Promise<string | undefined> {
    const named = ctx.get('x-person');
    if (named !== '') return named;
    if (ctx.method === 'GET') {
      ctx.body = personPage('Identity provider');
      return undefined;
    }
    const { email, verified } = personOf(await text(ctx.req));
    people.set(email, { email, email_verified: verified, name: email });
    return email;
  }

  provider.use(async (ctx: KoaContextWithOIDC, next: () => Promise<void>) => {
    asked.push(ctx.path);
    if (forging.down !== undefined) {
      ctx.status = forging.down;
      return;
    }
    if (ctx.path === RISC_CONFIGURATION) {
      ctx.body = { issuer: `${issuerUrl}/`, jwks_uri: `${issuerUrl}${EVENT_KEYS}` };
      return;
    }
    if (ctx.path === EVENT_KEYS) {
      ctx.body = { keys: eventKeys };
      return;
    }
    const [, uid] = /^\/interaction\/(.+)$/.exec(ctx.path) ?? [];
    if (uid !== undefined) {
      const accountId = await whoIsThere(ctx);
      if (accountId === undefined) return;
      const grant = new provider.Grant({ accountId, clientId });
      grant.addOIDCScope('openid email profile offline_access');
      const result = { login: { accountId }, consent: { grantId: await grant.save() } };
      ctx.redirect(await provider.interactionResult(ctx.req, ctx.res, result));
      return;
    }
    await next();
    const { body, oidc } = ctx;
    if (oidc?.route === 'revocation') revoked.push(String(oidc.params?.token));
    if (oidc?.route === 'jwks' && forging.keys !== undefined) ctx.body = { keys: forging.keys };
    if (oidc?.route === 'token') {
      const given = body as Readonly<Record<string, unknown>>;
      const tokens = [given.access_token, given.refresh_token, given.id_token];
      issued.push(...tokens.filter((each) => typeof each === 'string'));
    }
    if (oidc?.route === 'discovery') Object.assign(body as object, forging.discovery);
    if (oidc?.route === 'token' && forging.idToken !== undefined) {
      const answer = body as { id_token?: string };
      if (answer.id_token === undefined) return;
      const [, payload = ''] = answer.id_token.split('.');
      const claims = JSON.parse(Buffer.from(payload, 'base64url').toString()) as JWTPayload;
      answer.id_token = await forging.idToken(claims);
    }
  });
  const answer = provider.callback();
  server.on('request', (request, response) => void answer(request, response));

  return {
    issuerUrl,
    clientId,
    clientSecret,
    forging,
    asked,
    issued,
    revoked,
    key: { kid: KID, privateKey, publicKey },
    async consent(authorizationUrl, subject, person) {
      people.set(subject, person);
      const cookies = new Map<string, string>();
      let url = new URL(authorizationUrl);
      while (url.origin === issuerUrl) {
        const cookie = [...cookies].map((pair) => pair.join('=')).join('; ');
        const headers = { cookie, 'x-person': subject };
        const response = await fetch(url, { headers, redirect: 'manual' });
        for (const set of response.headers.getSetCookie()) {
          const [name = '', value = ''] = set.split(';')[0]?.split('=') ?? [];
          cookies.set(name, value);
        }
        const location = response.headers.get('location');
        if (location === null) {
          throw new Error(`the provider answered ${response.status}: ${await response.text()}`);
        }
        url = new URL(location, url);
      }
      return url;
    },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
