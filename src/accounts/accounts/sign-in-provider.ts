import type { Applicant } from './proven-identity.js';
import type { ProviderKind } from '../../types/sign-in-methods.js';

/** The secrets of a sign-in, which the browser returns with the provider's answer. */
export interface SignInSecrets {
  readonly state: string;
  readonly nonce: string;
  /** The PKCE verifier, sent when the code is exchanged. */
  readonly verifier: string;
}

export interface ProviderAnswer {
  readonly code: string;
  /** The issuer named in the answer (RFC 9207). */
  readonly iss?: string | undefined;
}

/** An external sign-in provider. All calls have a time limit and follow no redirect. */
export interface SignInProvider {
  readonly kind: ProviderKind;

  /** Returns the URL to send the browser to. @throws when the provider's metadata cannot be fetched. */
  authorizationUrl(secrets: SignInSecrets): Promise<URL>;

  /** Exchanges the code, which cannot be used again even after a lost answer. @throws IdentityRefusedError */
  prove(answer: ProviderAnswer, secrets: SignInSecrets): Promise<Applicant>;
}
