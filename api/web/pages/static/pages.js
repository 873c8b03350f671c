// @ts-check
// Submits the forms of the pages as JSON and shows the outcome.

const TIMEOUT_MS = 60_000;

/** Milliseconds after which a form that waits for a sign-in is not submitted any more. */
const RESUME_WITHIN_MS = 10 * 60_000;

/** Key of the session storage: the form to submit after the user has signed in again. */
const RESUME = 'resume-after-sign-in';

/** @typedef {Readonly<Record<string, unknown>>} Json */

/** @typedef {{ request(call: { method: string, params?: unknown[] }): Promise<unknown> }} Wallet */

/**
 * Returns the browser's wallet (EIP-1193).
 *
 * @returns {Wallet | undefined}
 */
const browserWallet = () => Reflect.get(window, 'ethereum');

/**
 * Calls the API.
 *
 * @param {string} method
 * @param {string} path
 * @param {Json} [body]
 */
function callApi(method, path, body) {
  return fetch(path, {
    method,
    redirect: 'error',
    signal: AbortSignal.timeout(TIMEOUT_MS),
    ...(body && { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }),
  });
}

/**
 * Reads a JSON answer.
 *
 * @param {Response} answer
 * @returns {Promise<Json>} an empty object for an answer of another type.
 */
async function jsonOf(answer) {
  const isJson = answer.headers.get('content-type')?.startsWith('application/json');
  return isJson ? answer.json() : {};
}

/**
 * Returns the fields of a form and the token of the page's URL, without empty optional fields.
 *
 * @param {HTMLFormElement} form
 * @returns {Json | undefined} undefined for a form without fields.
 */
function bodyOf(form) {
  const data = new FormData(form);
  /** @type {[string, unknown][]} */
  const fields = [...data];
  for (const box of form.querySelectorAll('input')) {
    if (box.type !== 'checkbox') continue;
    fields.push([box.name, 'list' in box.dataset ? data.getAll(box.name) : box.checked]);
  }
  if ('token' in form.dataset) {
    fields.push(['token', new URLSearchParams(location.search).get('token') ?? '']);
  }
  if (fields.length === 0) return undefined;
  return Object.fromEntries(fields.filter(([, value]) => value !== ''));
}

/**
 * Requests the wallet's signature of a message that proves its owner's presence (EIP-4361).
 *
 * @param {Wallet} wallet
 * @param {string} chainId
 * @returns {Promise<Json>}
 */
async function walletProof(wallet, chainId) {
  const accounts = await wallet.request({ method: 'eth_requestAccounts' });
  const address = Array.isArray(accounts) ? String(accounts[0]) : '';
  const { nonce } = await jsonOf(await callApi('POST', '/api/auth/nonce'));
  const message = [
    `${location.host} wants you to sign in with your Ethereum account:`,
    ...[address, '', 'This shows that the wallet is yours.', ''],
    ...[`URI: ${location.origin}`, 'Version: 1', `Chain ID: ${chainId}`],
    ...[`Nonce: ${nonce}`, `Issued At: ${new Date().toISOString()}`],
  ].join('\n');
  const bytes = [...new TextEncoder().encode(message)];
  const hex = `0x${bytes.map((byte) => byte.toString(16).padStart(2, '0')).join('')}`;
  const signature = await wallet.request({ method: 'personal_sign', params: [hex, address] });
  return { address, message, signature };
}

/**
 * Shows a message beside its form and moves the focus there.
 *
 * @param {HTMLFormElement} form
 * @param {'problem' | 'notice'} kind
 * @param {...(string | Node)} message
 */
function show(form, kind, ...message) {
  const outcome = /** @type {HTMLElement} */ (form.querySelector('.outcome'));
  outcome.classList.remove('problem', 'notice');
  outcome.classList.add(kind);
  outcome.replaceChildren(...message);
  outcome.focus();
}

/**
 * Shows the reason of a refused request.
 *
 * @param {HTMLFormElement} form
 * @param {Json} answer
 */
function showRefusal(form, { code, error }) {
  if (code === 'REAUTHENTICATION_REQUIRED') {
    const link = document.createElement('a');
    link.href = '/login';
    link.textContent = 'Sign in again';
    link.addEventListener('click', () => resumeAfterSignIn(form));
    return show(form, 'problem', 'This action requires a recent sign-in. ', link);
  }
  return show(form, 'problem', typeof error === 'string' ? `${error}.` : 'The request failed.');
}

/**
 * Marks a form that opens a link, to be submitted on the page that follows the sign-in. The mark is in this
 * tab's storage and not in a URL, so no foreign page can make one.
 *
 * @param {HTMLFormElement} form
 */
function resumeAfterSignIn(form) {
  if (form.dataset.follows === undefined) return;
  sessionStorage.setItem(RESUME, JSON.stringify({ form: form.id, at: Date.now() }));
}

/** Submits the form that waited for a sign-in, at most once. */
function resume() {
  const stored = sessionStorage.getItem(RESUME);
  if (stored === null || location.pathname === '/login') return;
  sessionStorage.removeItem(RESUME);
  const { at, form: id } = JSON.parse(stored);
  const form = document.getElementById(id);
  if (form instanceof HTMLFormElement && Date.now() - at < RESUME_WITHIN_MS) void submit(form);
}

/**
 * Saves an answer as a file.
 *
 * @param {Response} answer
 * @param {string} name
 */
async function save(answer, name) {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(await answer.blob());
  link.download = name;
  link.click();
  URL.revokeObjectURL(link.href);
}

/**
 * Opens the page that follows a success, or shows the success.
 *
 * @param {HTMLFormElement} form
 * @param {Json} answer
 */
function showSuccess(form, answer) {
  const { follows, said = 'Done.', shows, then } = form.dataset;
  form.reset();
  if (follows !== undefined) return location.assign(String(answer[follows]));
  if (then === 'here') return location.reload();
  if (then !== undefined) return location.assign(then);
  if (shows === undefined) return show(form, 'notice', said);
  const code = document.createElement('code');
  code.textContent = String(answer[shows]);
  show(form, 'notice', said, ' ', code);
}

/**
 * Sends a form and handles the answer.
 *
 * @param {HTMLFormElement} form
 */
async function send(form) {
  const { chainId, saves, sends = 'POST' } = form.dataset;
  const wallet = browserWallet();
  let body = bodyOf(form);
  if (chainId !== undefined && wallet !== undefined) {
    // The wallet has shown its own message when its owner declines.
    body = await walletProof(wallet, chainId).catch(() => undefined);
    if (body === undefined) return show(form, 'problem', 'The wallet did not sign.');
  }
  const answer = await callApi(sends, new URL(form.action).pathname, body);
  if (answer.status === 401 && !('signsIn' in form.dataset)) {
    resumeAfterSignIn(form);
    return location.assign('/login');
  }
  if (!answer.ok) return showRefusal(form, await jsonOf(answer));
  if (saves !== undefined) return save(answer, saves);
  showSuccess(form, await jsonOf(answer));
}

/**
 * Sends a form once, however often its button is pressed.
 *
 * @param {HTMLFormElement} form
 */
async function submit(form) {
  const button = form.querySelector('button');
  if (!button || button.disabled) return;
  button.disabled = true;
  try {
    await send(form);
  } catch {
    show(form, 'problem', 'The platform did not answer. Try again.');
  } finally {
    button.disabled = false;
  }
}

for (const form of document.querySelectorAll('form')) {
  if (form.dataset.chainId !== undefined) form.hidden = browserWallet() === undefined;
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    void submit(form);
  });
}
resume();
