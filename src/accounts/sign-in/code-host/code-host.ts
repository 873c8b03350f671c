import {
  allowInsecureRequests,
  authorizationCodeGrant,
  buildAuthorizationUrl,
  calculatePKCECodeChallenge,
  ClientSecretPost,
  Configuration,
  customFetch,
  fetchProtectedResource,
} from 'openid-client';
import * as z from 'zod';
import { IdentityRefusedError, type Applicant } from '../../accounts/proven-identity.js';
import type {
  ProviderAnswer,
  SignInProvider,
  SignInSecrets,
} from '../../accounts/sign-in-provider.js';
import { BadGatewayError } from '../../../lib/errors.js';
import { boundedFetch, PROVIDER_TIMEOUT_S } from '../identity-provider/bounded-fetch.js';
import type { CodeHostSettings } from './settings.js';

const SCOPES = 'read:user user:email';

const user = z.object({
  id: z.int().positive(),
  login: z.string().min(1),
  name: z.string().nullish(),
});

const emails = z.array(
  z.object({ email: z.string(), primary: z.boolean(), verified: z.boolean() }),
);

/** An OAuth client of the code host (in GitHub's form). */
export class CodeHost implements SignInProvider {
  readonly kind = 'github';
  readonly #settings: CodeHostSettings;
  readonly #configuration: Configuration;
  readonly #redirectUri: string;

  constructor(
    settings: CodeHostSettings,
    client: { readonly id: string; readonly secret: string },
    redirectUri: string,
  ) {
    const { apiUrl, url } = settings;
    this.#settings = settings;
    this.#redirectUri = redirectUri;
    const server = {
      issuer: url,
      authorization_endpoint: `${url}/login/oauth/authorize`,
      token_endpoint: `${url}/login/oauth/access_token`,
    };
    const authentication = ClientSecretPost(client.secret);
    this.#configuration = new Configuration(server, client.id, undefined, authentication);
    this.#configuration[customFetch] = boundedFetch;
    this.#configuration.timeout = PROVIDER_TIMEOUT_S;
    if ([url, apiUrl].some((each) => each.startsWith('http:'))) {
      allowInsecureRequests(this.#configuration);
    }
  }

  async authorizationUrl({ state, verifier }: SignInSecrets): Promise<URL> {
    return buildAuthorizationUrl(this.#configuration, {
      redirect_uri: this.#redirectUri,
      scope: SCOPES,
      state,
      code_challenge: await calculatePKCECodeChallenge(verifier),
      code_challenge_method: 'S256',
    });
  }

  async prove({ code }: ProviderAnswer, { state, verifier }: SignInSecrets): Promise<Applicant> {
    const answer = new URL(this.#redirectUri);
    answer.search = new URLSearchParams({ code, state }).toString();
    const tokens = await authorizationCodeGrant(this.#configuration, answer, {
      expectedState: state,
      pkceCodeVerifier: verifier,
    }).catch((cause: unknown) => {
      throw new IdentityRefusedError('TokenFailed', { cause });
    });
    const [who, addresses] = await Promise.all([
      this.#request(tokens.access_token, '/user', user),
      this.#request(tokens.access_token, '/user/emails', emails),
    ]);
    const primary = addresses.find((each) => each.primary);
    return {
      kind: this.kind,
      issuer: this.#settings.url,
      // Login names can be given up and reused by another user, ids cannot.
      subject: String(who.id),
      label: who.login,
      email: primary?.email,
      emailVerified: primary?.verified === true,
      name: who.name ?? undefined,
    };
  }

  /** Requests a resource. @throws BadGatewayError for an error status or an unexpected form. */
  async #request<T>(token: string, path: string, schema: z.ZodType<T>): Promise<T> {
    const response = await fetchProtectedResource(
      this.#configuration,
      token,
      new URL(`${this.#settings.apiUrl}${path}`),
      'GET',
      undefined,
      new Headers({ accept: 'application/vnd.github+json', 'x-github-api-version': '2022-11-28' }),
    );
    if (!response.ok) throw new BadGatewayError(`The code host answered ${response.status}`);
    const parsed = schema.safeParse(await response.json());
    if (!parsed.success) throw new BadGatewayError('The code host answered in an unexpected form');
    return parsed.data;
  }
}
