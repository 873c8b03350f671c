import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { exportJWK, generateKeyPair, SignJWT, type CryptoKey, type JWK } from 'jose';

/** Default audience of the stub's tokens. */
export const DOMAIN = 'agents.example';

/** Deviations of a token from a valid one. */
export interface Said {
  readonly claims?: Readonly<Record<string, unknown>>;
  readonly header?: Readonly<Record<string, unknown>>;
  readonly key?: CryptoKey | Uint8Array;
}

/** A stub of Farcaster's Quick Auth server that serves only its keys. */
export interface QuickAuthStub {
  readonly url: string;
  /** Keys that the stub publishes; a test may change them. */
  keys: JWK[];
  /** Number of requests received. */
  readonly asked: () => number;
  /** Answers every request with this status and body from now on. */
  answer(status: number, body: string): void;
  /** Issues a token as the real server does: valid for one hour, with a number as `sub`. */
  token(fid: number, said?: Said): Promise<string>;
  /** Replaces the signing key with a new one. */
  rotate(): Promise<void>;
  close(): Promise<void>;
}

export async function startQuickAuth(): Promise<QuickAuthStub> {
  let count = 0;
  let generation = 0;
  let signing: CryptoKey;
  let fixed: { status: number; body: string } | undefined;
  const server = createServer((request, response) => {
    count += 1;
    const known = request.url === '/.well-known/jwks.json';
    const { status, body } = fixed ?? {
      status: known ? 200 : 404,
      body: JSON.stringify({ keys: stub.keys }),
    };
    response.writeHead(status, { 'content-type': 'application/json' }).end(body);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo; // never a string for a TCP listener
  const url = `http://127.0.0.1:${port}`;
  const stub: QuickAuthStub = {
    url,
    keys: [],
    asked: () => count,
    answer: (status, body) => (fixed = { status, body }),
    token(fid, { claims, header, key } = {}) {
      const now = Math.floor(Date.now() / 1_000);
      // The library's type requires a string as subject, but Farcaster issues a number.
      const payload: Record<string, unknown> = {
        iat: now,
        exp: now + 3_600,
        iss: url,
        aud: DOMAIN,
        sub: fid,
        ...claims,
      };
      return new SignJWT(payload)
        .setProtectedHeader({ alg: 'RS256', kid: String(generation), ...header })
        .sign(key ?? signing);
    },
    async rotate() {
      generation += 1;
      const pair = await generateKeyPair('RS256');
      signing = pair.privateKey;
      const kid = String(generation);
      stub.keys = [{ ...(await exportJWK(pair.publicKey)), kid, alg: 'RS256', use: 'sig' }];
    },
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
  await stub.rotate();
  return stub;
}
