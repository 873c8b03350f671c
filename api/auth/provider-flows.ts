import { randomBytes } from 'node:crypto';
import type { SignInSecrets } from '../../src/accounts/accounts/sign-in-provider.js';
import type { ProviderKind } from '../../src/types/sign-in-methods.js';
import { SecretUnreadableError, type SecretBox } from '../../src/platform/secrets/secret-box.js';
import { tokenHash } from '../../src/platform/secrets/token-hash.js';

/** Time to complete a sign-in at a provider. */
const FLOW_SECONDS = 10 * 60;

/** Maximum number of concurrent flows per browser, to bound the size of the cookie header. */
const MAX_FLOWS = 5;

const RANDOM_BYTES = 32;

const PREFIX = 'sign-in-';

/** Reports whether a cookie, by its name in lower case, is one of a sign-in in progress. */
export const isSignInCookie = (name: string): boolean =>
  name.replace('__host-', '').startsWith(PREFIX);

/** A sign-in in progress, stored in the browser until the provider sends it back. */
export interface ProviderFlow extends SignInSecrets {
  /** Expiry, in milliseconds since 1970. */
  readonly until: number;
  /** The session whose account is to be linked; absent for a sign-in. */
  readonly link?: { readonly userId: string; readonly sessionId: string };
}

/** Sign-ins in progress, each in a sealed cookie of its own: parallel tabs work, and nothing is stored. */
export class ProviderFlows {
  readonly #context: string;
  readonly #prefix: string;
  readonly #secrets: SecretBox;
  readonly #secure: boolean;

  /** @param secure false only for plain HTTP. */
  constructor(kind: ProviderKind, secrets: SecretBox, secure: boolean) {
    this.#context = `sign-in-flow:${kind}`;
    // The `__Host-` prefix keeps sibling hosts from setting the cookie.
    this.#prefix = `${secure ? '__Host-' : ''}${PREFIX}${kind}-`;
    this.#secrets = secrets;
    this.#secure = secure;
  }

  begin(link?: ProviderFlow['link']): ProviderFlow {
    const random = () => randomBytes(RANDOM_BYTES).toString('base64url');
    return {
      state: random(),
      nonce: random(),
      verifier: random(),
      until: Date.now() + FLOW_SECONDS * 1000,
      ...(link && { link }),
    };
  }

  /** Returns the `Set-Cookie` values that store a flow and evict the oldest flows over the limit. */
  store(flow: ProviderFlow, cookies: string | undefined): string[] {
    const begun = this.#cookies(cookies).slice(0, 1 - MAX_FLOWS);
    const sealed = this.#secrets.seal(JSON.stringify(flow), this.#context);
    return [
      ...new Set(begun.map(([name]) => this.#serialize(name, '', 0))),
      this.#serialize(this.#nameOf(flow.state), sealed, FLOW_SECONDS),
    ];
  }

  /** Returns the flow with that state if this browser began it. Two cookies of the same name count as none. */
  find(state: string, cookies: string | undefined): ProviderFlow | undefined {
    const name = this.#nameOf(state);
    const [found, ...more] = this.#cookies(cookies).filter((each) => each[0] === name);
    if (found === undefined || more.length > 0) return undefined;
    const flow = this.#open(found[1]);
    return flow?.state === state && flow.until > Date.now() ? flow : undefined;
  }

  /** Returns the `Set-Cookie` value that removes a flow. */
  end(state: string): string {
    return this.#serialize(this.#nameOf(state), '', 0);
  }

  #open(sealed: string): ProviderFlow | undefined {
    try {
      // Safe cast: only this class seals values in this context.
      return JSON.parse(this.#secrets.open(sealed, this.#context)) as ProviderFlow;
    } catch (error) {
      if (error instanceof SecretUnreadableError) return undefined;
      throw error;
    }
  }

  #nameOf(state: string): string {
    return this.#prefix + tokenHash(state).slice(0, 16);
  }

  #cookies(header = ''): [name: string, value: string][] {
    return header.split(';').flatMap((pair): [string, string][] => {
      const [name = '', value = ''] = pair.split('=').map((part) => part.trim());
      return name.startsWith(this.#prefix) ? [[name, value]] : [];
    });
  }

  #serialize(name: string, value: string, maxAge: number): string {
    const attributes = `Path=/; Max-Age=${maxAge}; HttpOnly; SameSite=Lax`;
    return `${name}=${value}; ${attributes}${this.#secure ? '; Secure' : ''}`;
  }
}
