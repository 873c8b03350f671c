import type { Applicant } from './proven-identity.js';
import type { ProviderKind } from '../../types/sign-in-methods.js';

/** What the browser that begins a sign-in brings back with the answer. */
export interface SignInSecrets {
  readonly state: string;
  readonly nonce: string;
  /** Of PKCE: shown when the code is exchanged. */
  readonly verifier: string;
}

/** What a provider's answer by way of the browser says. */
export interface ProviderAnswer {
  readonly code: string;
  /** Who says that they answer (RFC 9207). */
  readonly iss?: string | undefined;
}

/** Somebody else at whom people sign in. All calls are bounded in time and follow no redirect. */
export interface SignInProvider {
  readonly kind: ProviderKind;

  /** Where a browser is sent. @throws when the provider cannot be asked where that is. */
  authorizationUrl(secrets: SignInSecrets): Promise<URL>;

  /**
   * Exchanges the code. When it was exchanged and we did not hear, it is used up: people sign in again.
   *
   * @throws IdentityRefusedError with `TokenFailed`, or what breaks off what is asked after that.
   */
  prove(answer: ProviderAnswer, secrets: SignInSecrets): Promise<Applicant>;
}
