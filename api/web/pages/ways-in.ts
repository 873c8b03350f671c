import { html, type Html } from '../../../src/html.js';
import type { WebDependencies } from '../dependencies.js';
import { form } from './forms.js';

/** The ways in beside the password that are configured. */
export interface WaysIn {
  /** The chain that wallets sign for. */
  readonly chainId: number;
}

export const waysInOf = ({ settings }: Pick<WebDependencies, 'settings'>): WaysIn => ({
  chainId: settings.chain.chainId,
});

/** On the page to sign in. */
export const signInByOthers = ({ chainId }: WaysIn): Html =>
  html`<div class="others">
    ${form({
      id: 'wallet',
      sends: ['POST', '/api/wallet-auth'],
      signsIn: true,
      chainId,
      then: '/dashboard',
      button: 'Continue with your wallet',
    })}
  </div>`;
