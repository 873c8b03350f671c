import { html } from '../../../src/lib/html.js';
import type { HtmlReply } from '../../http/reply.js';
import { form, keepKeys, newPassword } from './forms.js';
import { page } from './layout.js';
import { successLocation } from './messages.js';

/** Renders `/reset-password`, which requests a link or sets the password; opening it uses up no token. */
export function resetPasswordPage(given: {
  readonly hasToken: boolean;
  /** True if mail can be sent. */
  readonly mail: boolean;
}): HtmlReply<200> {
  if (given.hasToken) {
    return page({ title: 'Set a new password', content: section(passwordOf(given.mail)) });
  }
  return page({
    title: 'Forgot your password?',
    content: section(
      given.mail
        ? requestForm()
        : html`<p>This platform sends no mail. Ask its operator for help.</p>`,
    ),
  });
}

const section = (content: ReturnType<typeof html>) =>
  html`<section>${content}</section>
    <p><a href="/login">Back to signing in</a></p>`;

const passwordOf = (mail: boolean) =>
  html`<p>
      The new password replaces the old one. All sessions end, and all API keys unless you keep
      them. ${mail && html`If the link has expired, <a href="/reset-password">get another</a>.`}
    </p>
    ${form({
      id: 'reset',
      endpoint: ['POST', '/api/auth/reset-password'],
      token: true,
      successLocation: successLocation('/login', 'password-reset'),
      fields: [newPassword('password')],
      choices: [keepKeys],
      button: 'Set the password',
    })}`;

const requestForm = () =>
  html`<p>We send you a link for setting a new password.</p>
    ${form({
      id: 'forgot',
      endpoint: ['POST', '/api/auth/forgot-password'],
      successText:
        'If an account has this address, a link was sent to it. It is valid for an hour.',
      fields: [{ label: 'Email', name: 'email', type: 'email', autocomplete: 'username' }],
      button: 'Send me a link',
    })}`;
