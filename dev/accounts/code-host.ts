import { createHash, randomBytes } from 'node:crypto';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { personOf, personPage } from './person-page.js';

/** A user of the code host, as its API describes them. */
export interface CodeHostUser {
  readonly id: number;
  readonly login: string;
  readonly name?: string | null;
  readonly emails: readonly { email: string; primary: boolean; verified: boolean }[];
}

export interface TestCodeHost {
  readonly url: string;
  readonly clientId: string;
  readonly clientSecret: string;
  /** HTTP status with which the API answers every request, if set. */
  down?: number | undefined;
  /** Codes and tokens that the code host has issued. */
  readonly issued: readonly string[];
  /** Returns the URL to which a browser is redirected when the user consents. */
  consent(authorizationUrl: string, user: CodeHostUser): URL;
  close(): Promise<void>;
}

const AUTHORIZE = '/login/oauth/authorize';

/** Status, media type, body, and the redirect URL. */
type Answer = readonly [number, string, string, string?];

/** Returns the user who was entered on the page: the same id for the same address. */
function userOf(form: string): CodeHostUser {
  const { email, verified } = personOf(form);
  const id = createHash('sha256').update(email).digest().readUInt32BE();
  const [login = email] = email.split('@');
  return { id, login, emails: [{ email, primary: true, verified }] };
}

interface Code {
  readonly user: CodeHostUser;
  readonly challenge: string | null;
  readonly redirectUri: string | null;
}

/**
 * Starts a stand-in of GitHub's sign-in and API, for the endpoints in use, with GitHub's response
 * formats.
 *
 * @param options.port any free port by default.
 */
export async function startCodeHost({ port: wanted = 0 } = {}): Promise<TestCodeHost> {
  const [clientId, clientSecret] = ['Iv1.platform', 'secret-of-the-platform-at-the-code-host'];
  const codes = new Map<string, Code>();
  const tokens = new Map<string, CodeHostUser>();
  const issued: string[] = [];

  /** Answers like GitHub, which returns its OAuth errors with status 200. */
  function exchange(form: URLSearchParams): Record<string, string> {
    if (form.get('client_id') !== clientId || form.get('client_secret') !== clientSecret) {
      return {
        error: 'incorrect_client_credentials',
        error_description: 'The client_id and/or client_secret passed are incorrect.',
      };
    }
    const presented = form.get('code') ?? '';
    const code = codes.get(presented);
    codes.delete(presented);
    const verifier = form.get('code_verifier') ?? '';
    const challenge = createHash('sha256').update(verifier).digest('base64url');
    if (code?.challenge !== challenge || code.redirectUri !== form.get('redirect_uri')) {
      return {
        error: 'bad_verification_code',
        error_description: 'The code passed is incorrect or expired.',
      };
    }
    const token = `gho_${randomBytes(18).toString('hex')}`;
    tokens.set(token, code.user);
    issued.push(token);
    return { access_token: token, scope: 'read:user,user:email', token_type: 'bearer' };
  }

  async function answer(request: IncomingMessage): Promise<Answer> {
    const { headers, method, url: path } = request;
    const json = (status: number, body: unknown): Answer => [
      status,
      'application/json; charset=utf-8',
      JSON.stringify(body),
    ];
    const { pathname } = new URL(path ?? '', 'http://code-host');
    if (method === 'GET' && pathname === AUTHORIZE) {
      return [200, 'text/html; charset=utf-8', personPage('Code host')];
    }
    if (method === 'POST' && pathname === AUTHORIZE) {
      const back = host.consent(`${host.url}${path}`, userOf(await text(request)));
      return [302, 'text/plain', '', back.href];
    }
    if (method === 'POST' && path === '/login/oauth/access_token') {
      const body = exchange(new URLSearchParams(await text(request)));
      if (headers.accept?.includes('json')) return json(200, body);
      const form = new URLSearchParams(body).toString();
      return [200, 'application/x-www-form-urlencoded; charset=utf-8', form];
    }
    if (!headers['user-agent']) {
      return [403, 'text/html', 'Request forbidden by administrative rules.'];
    }
    if (host.down !== undefined) return json(host.down, { message: 'Server Error' });
    const user = tokens.get(/^Bearer (.+)$/.exec(headers.authorization ?? '')?.[1] ?? '');
    if (!user) return json(401, { message: 'Bad credentials', status: '401' });
    const { emails, id, login, name = null } = user;
    // The profile's address is what users choose to show: it proves nothing.
    if (path === '/user') return json(200, { login, id, name, email: 'shown@elsewhere.test' });
    if (path === '/user/emails') {
      return json(
        200,
        emails.map((each) => ({ ...each, visibility: each.primary ? 'private' : null })),
      );
    }
    return json(404, { message: 'Not Found' });
  }

  const server = createServer((request, response) => {
    void answer(request).then(([status, type, body, location]) => {
      response.writeHead(status, { 'content-type': type, ...(location && { location }) }).end(body);
    });
  });
  await new Promise<void>((resolve) => server.listen(wanted, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo; // TCP: never a string.
  const host: TestCodeHost = {
    url: `http://127.0.0.1:${port}`,
    clientId,
    clientSecret,
    issued,
    consent(authorizationUrl, user) {
      const { searchParams: asked } = new URL(authorizationUrl);
      const code = randomBytes(10).toString('hex');
      const redirectUri = asked.get('redirect_uri');
      issued.push(code);
      codes.set(code, { user, challenge: asked.get('code_challenge'), redirectUri });
      const back = new URL(redirectUri ?? '');
      back.search = new URLSearchParams({ code, state: asked.get('state') ?? '' }).toString();
      return back;
    },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
  return host;
}
