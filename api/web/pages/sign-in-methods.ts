import type { ListedIdentity } from '../../../src/accounts/accounts/identities.js';
import type { IdentityKind } from '../../../src/types/sign-in-methods.js';
import { html, type Html } from '../../../src/lib/html.js';
import type { WebDependencies } from '../dependencies.js';
import { form } from './forms.js';
import { successLocation } from './messages.js';
import { formatTime } from './format-time.js';

export interface SignInMethods {
  /** Providers that the browser is redirected to. */
  readonly providers: readonly { readonly kind: 'google' | 'github'; readonly name: string }[];
  readonly chainId: number;
}

export function signInMethods({
  providers,
  settings,
}: Pick<WebDependencies, 'providers' | 'settings'>): SignInMethods {
  const { chain, codeHost, identityProvider } = settings;
  const google = {
    kind: 'google',
    name: identityProvider.name ?? nameOf(identityProvider.issuerUrl),
  } as const;
  const github = { kind: 'github', name: codeHost.name ?? nameOf(codeHost.url) } as const;
  return {
    providers: [google, github].filter(({ kind }) => providers[kind] !== undefined),
    chainId: chain.chainId,
  };
}

const KNOWN: Readonly<Record<string, string>> = {
  'accounts.google.com': 'Google',
  'github.com': 'GitHub',
};

function nameOf(url: string): string {
  const { host } = new URL(url);
  return KNOWN[host] ?? host;
}

/** The buttons for other ways to sign in, on `/login`. */
export const otherSignInMethods = ({ chainId, providers }: SignInMethods): Html =>
  html`<div class="others">
    ${providers.map(
      ({ kind, name }) =>
        html`<p><a class="button" href="/api/auth/${kind}">Continue with ${name}</a></p>`,
    )}
    ${form({
      id: 'wallet',
      endpoint: ['POST', '/api/wallet-auth'],
      signsIn: true,
      chainId,
      successLocation: '/dashboard',
      button: 'Continue with your wallet',
    })}
  </div>`;

const IDENTITIES = '/api/settings/identities';

const KINDS: Readonly<Record<IdentityKind, string>> = {
  google: 'Google',
  github: 'GitHub',
  wallet: 'Wallet',
  farcaster: 'Farcaster',
};

/** Renders the linked identities on the dashboard, with buttons to link more. */
export function linkedAccounts(
  identities: readonly ListedIdentity[],
  { chainId, providers }: SignInMethods,
): Html {
  const names: Readonly<Record<string, string>> = {
    ...KINDS,
    ...Object.fromEntries(providers.map(({ kind, name }) => [kind, name])),
  };
  const items = identities.map(
    ({ createdAt, id, kind, label, lastUsedAt }) =>
      html`<li>
        <p>
          <strong>${names[kind]}: ${label}</strong><br />
          Linked on ${formatTime(createdAt)};
          ${lastUsedAt ? html`last used on ${formatTime(lastUsedAt)}` : 'not used yet'}
        </p>
        ${form({
          id: `identity-${id}`,
          endpoint: ['DELETE', `${IDENTITIES}/${id}`],
          successLocation: successLocation('/dashboard', 'unlinked'),
          button: 'Unlink',
          about: `Unlink ${label}`,
          dangerous: true,
        })}
      </li>`,
  );
  return html`${
    items.length > 0
      ? html`<ul class="things">
          ${items}
        </ul>`
      : html`<p>
          No linked accounts yet. You can sign in to this account with any account that you link.
        </p>`
  }
  ${providers.map(({ kind, name }) =>
    form({
      id: `link-${kind}`,
      endpoint: ['POST', `${IDENTITIES}/${kind}`],
      follows: 'url',
      button: `Link ${name}`,
    }),
  )}
  ${form({
    id: 'link-wallet',
    endpoint: ['POST', `${IDENTITIES}/wallet`],
    chainId,
    successLocation: successLocation('/dashboard', 'linked'),
    button: 'Link your wallet',
  })}`;
}
