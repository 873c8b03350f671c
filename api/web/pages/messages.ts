/** Names of the providers in error codes, and in words. */
const PROVIDERS = { Idp: 'the identity provider', Codehost: 'the code host' } as const;

/** Messages for the errors of a provider sign-in, by the value of `/login?error=`. */
const REFUSALS: Readonly<Record<string, (provider: string) => string>> = {
  NotConfigured: (provider) => `Signing in by ${provider} is not set up here.`,
  AuthFailed: (provider) =>
    `Signing in by ${provider} was not finished, or was started in another browser. Try again.`,
  TokenFailed: (provider) => `The answer from ${provider} could not be verified. Try again.`,
  NoEmail: (provider) =>
    `Your account at ${provider} has no verified email address. Verify one there, or sign in another way.`,
  AuthError: (provider) => `Signing in by ${provider} failed on our side. Try again later.`,
  LinkRefused: (provider) =>
    `Your account at ${provider} was not linked. It belongs to another account here, or an account here has its address: sign in to that account as before, and link ${provider} on its dashboard.`,
  SignInDisabled: (provider) =>
    `Signing in by ${provider} is switched off for this account, because its owner may have lost control of it. Sign in another way.`,
};

const SIGN_IN_PROBLEMS = new Map(
  Object.entries(PROVIDERS).flatMap(([prefix, provider]) =>
    Object.entries(REFUSALS).map(([name, say]) => [`${prefix}${name}`, say(provider)] as const),
  ),
);

/** Returns the message for a value of `/login?error=`; the value itself is never shown. */
export function signInProblem(error: string | undefined): string | undefined {
  if (error === undefined) return undefined;
  return SIGN_IN_PROBLEMS.get(error) ?? 'Signing in failed. Try again.';
}

/** Success messages, by the value of `?done=`. */
const DONE = {
  registered: 'Your account is ready. Sign in.',
  'password-reset': 'Your new password is set, and all sessions have ended. Sign in with it.',
  'address-confirmed': 'Your address is confirmed.',
  admin: 'Your account is an admin now.',
  'profile-changed': 'Your profile is changed.',
  'signed-out': 'You are signed out.',
  'password-changed': 'Your password is changed. All other sessions have ended.',
  'session-ended': 'The session has ended.',
  'sessions-ended': 'All other sessions have ended.',
  deleting: 'Your account is being deleted, and you are signed out.',
  linked: 'The account is now linked. You can sign in with it.',
  unlinked: 'The account is unlinked, and the sessions that it opened have ended.',
  'credits-bought':
    'Your payment is done. Your credits appear when the payment processor confirms the payment.',
  'credits-not-bought': 'No credits were bought.',
  'plan-bought':
    'Your payment is done. Your plan holds as soon as the payment processor reports it.',
  'plan-not-bought': 'No plan was bought.',
  'plan-changed':
    'A change that you have confirmed holds as soon as the payment processor reports it.',
  'key-deleted': 'The key is deleted.',
  'own-key-stored': 'Your own key is stored and used for your calls to its provider.',
  'own-key-deleted': 'Your own key is deleted.',
} as const;

export type Done = keyof typeof DONE;

const isDone = (value: string): value is Done => Object.hasOwn(DONE, value);

/** Returns the message for a value of `?done=`. @returns undefined for an unknown value. */
export function doneNotice(value: string | undefined): string | undefined {
  return value !== undefined && isDone(value) ? DONE[value] : undefined;
}

/** The page to open after a form, with the success message to show there. */
export const successLocation = (path: '/login' | '/dashboard', done: Done) =>
  `${path}?done=${done}`;
