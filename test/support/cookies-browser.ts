import { newAddress, send } from './http.js';

/** A client that stores cookies and sends them back, as a page of the platform does. */
export class Browser {
  readonly cookies = new Map<string, string>();
  readonly address = newAddress();
  readonly #base: string;

  constructor(base: string) {
    this.#base = base;
  }

  get cookie(): string {
    return [...this.cookies].map((pair) => pair.join('=')).join('; ');
  }

  async ask(
    method: string,
    path: string,
    { body, headers = {} }: { body?: unknown; headers?: Record<string, string> } = {},
  ) {
    const answer = await send(this.#base, method, path, {
      ...(body !== undefined && { body }),
      headers: { ...(this.cookies.size > 0 && { cookie: this.cookie }), ...headers },
      from: this.address,
    });
    for (const set of answer.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(set) ?? [];
      if (/; Max-Age=0;/.test(set)) this.cookies.delete(name);
      else this.cookies.set(name, value);
    }
    const text = await answer.text();
    return {
      status: answer.status,
      location: answer.headers.get('location') ?? '',
      headers: answer.headers,
      // Untyped, so that tests read it directly.
      body: text.startsWith('{') ? JSON.parse(text) : undefined,
    };
  }

  /** Creates another browser with a stolen copy of all cookies. */
  copy(): Browser {
    const copy = new Browser(this.#base);
    for (const [name, value] of this.cookies) copy.cookies.set(name, value);
    return copy;
  }
}
