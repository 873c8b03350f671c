// @ts-check
// Sends the forms of the pages as the API wants them, and says how it went.

const TIMEOUT_MS = 60_000;

/** @typedef {Readonly<Record<string, unknown>>} Json */

/**
 * Asks the API.
 *
 * @param {string} method
 * @param {string} path
 * @param {Json} [body]
 * @returns {Promise<{ ok: boolean, status: number, body: Json }>}
 */
async function ask(method, path, body) {
  const response = await fetch(path, {
    method,
    redirect: 'error',
    signal: AbortSignal.timeout(TIMEOUT_MS),
    ...(body && { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }),
  });
  const isJson = response.headers.get('content-type')?.startsWith('application/json');
  return { ok: response.ok, status: response.status, body: isJson ? await response.json() : {} };
}

/**
 * What people have typed in; a field that may be empty, and is, is not sent.
 *
 * @param {HTMLFormElement} form
 * @returns {Json | undefined} undefined when it has no fields.
 */
function bodyOf(form) {
  const fields = [...new FormData(form)];
  if (fields.length === 0) return undefined;
  return Object.fromEntries(fields.filter(([, value]) => value !== ''));
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

/** @param {string | undefined} then */
function lead(then) {
  if (then === 'here') location.reload();
  else if (then !== undefined) location.assign(then);
}

/** @param {HTMLFormElement} form */
async function send(form) {
  const { said, sends = 'POST', shows, then } = form.dataset;
  const answer = await ask(sends, new URL(form.action).pathname, bodyOf(form));
  if (!answer.ok) {
    const { error } = answer.body;
    return say(form, 'problem', typeof error === 'string' ? `${error}.` : 'That did not work.');
  }
  form.reset();
  if (then !== undefined) return lead(then);
  const shown = shows === undefined ? undefined : answer.body[shows];
  if (typeof shown !== 'string') return say(form, 'notice', said ?? 'Done.');
  const code = document.createElement('code');
  code.textContent = shown;
  say(form, 'notice', said ?? '', ' ', code);
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
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    void submit(form);
  });
}
