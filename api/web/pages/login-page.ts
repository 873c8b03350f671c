import { html } from '../../../src/lib/html.js';
import type { HtmlReply } from '../../http/reply.js';
import { form, newPassword } from './forms.js';
import { page } from './layout.js';
import { doneNotice, signInProblem, successLocation } from './messages.js';
import { otherSignInMethods, type SignInMethods } from './sign-in-methods.js';

/** Renders `/login`: all ways to sign in, and registration. */
export function loginPage(given: {
  /** Email of the signed-in user, who may have to sign in again. */
  readonly email: string | undefined;
  readonly error?: string | undefined;
  readonly done?: string | undefined;
  readonly methods: SignInMethods;
  /** True if mail can be sent. */
  readonly mail: boolean;
}): HtmlReply<200> {
  const { done, email, error, mail, methods } = given;
  return page({
    title: 'Sign in',
    problem: signInProblem(error),
    notice: doneNotice(done),
    content: html`
      ${
        email &&
        html`<p>
          You are signed in as ${email}. Sign in again for an action that requires it, or go to your
          <a href="/dashboard">dashboard</a>.
        </p>`
      }
      <section aria-labelledby="with-password">
        <h2 id="with-password">With your password</h2>
        ${passwordForm('/dashboard')}
        ${mail && html`<p><a href="/reset-password">Forgot your password?</a></p>`}
      </section>
      ${otherSignInMethods(methods)}
      <section aria-labelledby="new-account">
        <h2 id="new-account">New here?</h2>
        ${registration()}
      </section>
    `,
  });
}

/** Renders the form for signing in by password. @param then the page to open after signing in. */
export function passwordForm(then: string) {
  return form({
    id: 'sign-in',
    endpoint: ['POST', '/api/auth/login'],
    signsIn: true,
    successLocation: then,
    fields: [
      { label: 'Email', name: 'email', type: 'email', autocomplete: 'username' },
      { label: 'Password', name: 'password', type: 'password', autocomplete: 'current-password' },
    ],
    button: 'Sign in',
  });
}

function registration() {
  return form(
    {
      id: 'register',
      endpoint: ['POST', '/api/register'],
      successLocation: successLocation('/login', 'registered'),
      fields: [
        { label: 'Email', name: 'email', type: 'email', autocomplete: 'email', maxLength: 254 },
        { ...newPassword('password'), label: 'Password' },
        { label: 'Name', name: 'name', autocomplete: 'name', maxLength: 200, optional: true },
        {
          label: 'Referral code',
          name: 'referralCode',
          autocomplete: 'off',
          maxLength: 20,
          optional: true,
        },
      ],
      button: 'Create an account',
    },
    // Honeypot: hidden from people, so only programs fill it in.
    html`<p class="unseen" aria-hidden="true">
      <label for="register-website">Website</label>
      <input id="register-website" name="website" tabindex="-1" autocomplete="off" />
    </p>`,
  );
}
