import {
  allowInsecureRequests,
  authorizationCodeGrant,
  buildAuthorizationUrl,
  calculatePKCECodeChallenge,
  ClientSecretPost,
  customFetch,
  discovery,
  enableNonRepudiationChecks,
  fetchUserInfo,
  None,
  tokenRevocation,
  type Configuration,
} from 'openid-client';
import * as z from 'zod';
import { IdentityRefusedError, type Applicant } from '../../accounts/proven-identity.js';
import type {
  ProviderAnswer,
  SignInProvider,
  SignInSecrets,
} from '../../accounts/sign-in-provider.js';
import { boundedFetch, PROVIDER_TIMEOUT_S } from './bounded-fetch.js';
import type { IdentityProviderSettings } from './settings.js';

const SCOPES = ['openid', 'email', 'profile'];
const OFFLINE = 'offline_access';

/** Milliseconds for which discovered metadata is cached, and before the next try after a failure. */
const DISCOVERED_MS = 60 * 60_000;
const NOT_DISCOVERED_MS = 5_000;

/** The used claims about a person; a claim of the wrong type counts as missing. */
const profile = z.object({
  email: z.string().optional().catch(undefined),
  // Only boolean `true` counts, although some providers send text.
  email_verified: z.boolean().optional().catch(undefined),
  name: z.string().optional().catch(undefined),
});

/** A client of the identity provider (OpenID Connect). */
export class IdentityProvider implements SignInProvider {
  readonly kind = 'google';
  readonly #settings: IdentityProviderSettings;
  readonly #clientId: string;
  readonly #redirectUri: string;
  #discovered: { readonly configuration: Promise<Configuration>; until: number } | undefined;

  constructor(settings: IdentityProviderSettings, clientId: string, redirectUri: string) {
    this.#settings = settings;
    this.#clientId = clientId;
    this.#redirectUri = redirectUri;
  }

  async authorizationUrl({ state, nonce, verifier }: SignInSecrets): Promise<URL> {
    const configuration = await this.#configuration();
    const offline = configuration.serverMetadata().scopes_supported?.includes(OFFLINE) === true;
    return buildAuthorizationUrl(configuration, {
      redirect_uri: this.#redirectUri,
      scope: [...SCOPES, ...(offline ? [OFFLINE] : [])].join(' '),
      state,
      nonce,
      code_challenge: await calculatePKCECodeChallenge(verifier),
      code_challenge_method: 'S256',
      // Requests a refresh token: Google needs `access_type`, others the scope, and both the user's consent.
      access_type: 'offline',
      prompt: 'consent',
    });
  }

  async prove(
    { code, iss }: ProviderAnswer,
    { state, nonce, verifier }: SignInSecrets,
  ): Promise<Applicant> {
    const configuration = await this.#configuration();
    const answer = new URL(this.#redirectUri);
    answer.search = new URLSearchParams({ code, state, ...(iss && { iss }) }).toString();
    const tokens = await authorizationCodeGrant(configuration, answer, {
      expectedState: state,
      expectedNonce: nonce,
      pkceCodeVerifier: verifier,
      idTokenExpected: true,
    }).catch((cause: unknown) => {
      throw new IdentityRefusedError('TokenFailed', { cause });
    });
    const claims = tokens.claims();
    if (claims === undefined) throw new IdentityRefusedError('TokenFailed');
    const said = profile.parse(
      claims.email === undefined && configuration.serverMetadata().userinfo_endpoint !== undefined
        ? await fetchUserInfo(configuration, tokens.access_token, claims.sub)
        : claims,
    );
    return {
      kind: this.kind,
      issuer: this.#settings.issuerUrl,
      subject: claims.sub,
      label: said.email ?? said.name ?? claims.sub,
      email: said.email,
      emailVerified: said.email_verified === true,
      name: said.name,
      refreshToken: tokens.refresh_token,
    };
  }

  /** Revokes a refresh token, idempotently. @throws if the outcome is unknown */
  async revoke(refreshToken: string): Promise<void> {
    const configuration = await this.#configuration();
    if (configuration.serverMetadata().revocation_endpoint === undefined) return;
    await tokenRevocation(configuration, refreshToken, { token_type_hint: 'refresh_token' });
  }

  #configuration(): Promise<Configuration> {
    if (this.#discovered !== undefined && this.#discovered.until > performance.now()) {
      return this.#discovered.configuration;
    }
    const configuration = this.#discover();
    const discovered = { configuration, until: performance.now() + DISCOVERED_MS };
    configuration.catch(() => {
      discovered.until = performance.now() + NOT_DISCOVERED_MS;
    });
    this.#discovered = discovered;
    return configuration;
  }

  #discover(): Promise<Configuration> {
    const { clientSecret, issuerUrl } = this.#settings;
    const issuer = new URL(issuerUrl);
    return discovery(
      issuer,
      this.#clientId,
      undefined,
      clientSecret === undefined ? None() : ClientSecretPost(clientSecret),
      {
        [customFetch]: boundedFetch,
        timeout: PROVIDER_TIMEOUT_S,
        execute: [
          // Otherwise the signatures of tokens from the token endpoint are not checked.
          enableNonRepudiationChecks,
          ...(issuer.protocol === 'http:' ? [allowInsecureRequests] : []),
        ],
      },
    );
  }
}
