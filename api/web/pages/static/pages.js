// @ts-check
// Sends the forms of the pages as the API wants them, and says how it went.

const TIMEOUT_MS = 60_000;

/** @typedef {Readonly<Record<string, unknown>>} Json */

/** @typedef {{ request(asked: { method: string, params?: unknown[] }): Promise<unknown> }} Wallet */

/**
 * The wallet that the browser has, if it has one (EIP-1193).
 *
 * @returns {Wallet | undefined}
 */
const walletOfBrowser = () => Reflect.get(window, 'ethereum');

/**
 * Asks the API.
 *
 * @param {string} method
 * @param {string} path
 * @param {Json} [body]
 */
function ask(method, path, body) {
  return fetch(path, {
    method,
    redirect: 'error',
    signal: AbortSignal.timeout(TIMEOUT_MS),
    ...(body && { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }),
  });
}

/**
 * @param {Response} answer
 * @returns {Promise<Json>} empty where it is none.
 */
async function jsonOf(answer) {
  const isJson = answer.headers.get('content-type')?.startsWith('application/json');
  return isJson ? answer.json() : {};
}

/**
 * What people have typed in, and the token of the address; a field that may be empty, and is, is not sent.
 *
 * @param {HTMLFormElement} form
 * @returns {Json | undefined} undefined when it has no fields.
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
 * Has a wallet sign that its owner is here (EIP-4361).
 *
 * @param {Wallet} wallet
 * @param {string} chainId
 * @returns {Promise<Json>}
 */
async function walletProof(wallet, chainId) {
  const accounts = await wallet.request({ method: 'eth_requestAccounts' });
  const address = Array.isArray(accounts) ? String(accounts[0]) : '';
  const { nonce } = await jsonOf(await ask('POST', '/api/auth/nonce'));
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
 * Says how it went, where the form has its place for that.
 *
 * @param {HTMLFormElement} form
 * @param {'problem' | 'notice'} kind
 * @param {...(string | Node)} said
 */
function say(form, kind, ...said) {
  const outcome = /** @type {HTMLElement} */ (form.querySelector('.outcome'));
  outcome.classList.remove('problem', 'notice');
  outcome.classList.add(kind);
  outcome.replaceChildren(...said);
  outcome.focus();
}

/**
 * Says why something was refused.
 *
 * @param {HTMLFormElement} form
 * @param {Json} answer
 */
function refuse(form, { code, error }) {
  if (code === 'REAUTHENTICATION_REQUIRED') {
    const link = document.createElement('a');
    link.href = '/login';
    link.textContent = 'Sign in again';
    return say(form, 'problem', 'For this you must have signed in just now. ', link);
  }
  return say(form, 'problem', typeof error === 'string' ? `${error}.` : 'That did not work.');
}

/**
 * Has the browser keep an answer as a file.
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
 * Goes on after something was done.
 *
 * @param {HTMLFormElement} form
 * @param {Json} answer
 */
function goOn(form, answer) {
  const { follows, said = 'Done.', shows, then } = form.dataset;
  form.reset();
  if (follows !== undefined) return location.assign(String(answer[follows]));
  if (then === 'here') return location.reload();
  if (then !== undefined) return location.assign(then);
  if (shows === undefined) return say(form, 'notice', said);
  const code = document.createElement('code');
  code.textContent = String(answer[shows]);
  say(form, 'notice', said, ' ', code);
}

/** @param {HTMLFormElement} form */
async function send(form) {
  const { chainId, saves, sends = 'POST' } = form.dataset;
  const wallet = walletOfBrowser();
  let body = bodyOf(form);
  if (chainId !== undefined && wallet !== undefined) {
    // Who says no to the wallet has said so there already.
    body = await walletProof(wallet, chainId).catch(() => undefined);
    if (body === undefined) return say(form, 'problem', 'The wallet has not signed.');
  }
  const answer = await ask(sends, new URL(form.action).pathname, body);
  if (answer.status === 401 && !('signsIn' in form.dataset)) return location.assign('/login');
  if (!answer.ok) return refuse(form, await jsonOf(answer));
  if (saves !== undefined) return save(answer, saves);
  goOn(form, await jsonOf(answer));
}

/** @param {HTMLFormElement} form */
async function submit(form) {
  const button = form.querySelector('button');
  if (!button || button.disabled) return;
  button.disabled = true;
  try {
    await send(form);
  } catch {
    say(form, 'problem', 'The platform did not answer. Try again.');
  } finally {
    button.disabled = false;
  }
}

for (const form of document.querySelectorAll('form')) {
  if (form.dataset.chainId !== undefined) form.hidden = walletOfBrowser() === undefined;
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    void submit(form);
  });
}
