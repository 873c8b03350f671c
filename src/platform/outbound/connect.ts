import type net from 'node:net';
import { isIPv6 } from 'node:net';
import tls from 'node:tls';
import { OutboundError } from './outbound-error.js';
import type { OwnPlaces } from './own-places.js';
import { isExplicitlyAllowed, isReachAllowed, type Allowed } from './reachable.js';
import type { ResolveName } from './resolve-name.js';
import type { Target } from './target.js';

/** Maximum number of addresses of one name that are tried. */
const MAX_TRIED = 4;

/** Milliseconds to connect to an address while further addresses remain. */
const CONNECT_MS = 3_000;

export interface Guard {
  readonly allowed: Allowed;
  readonly own: OwnPlaces;
  readonly resolve: ResolveName;
  readonly connect: Connect;
}

export type Connect = (to: net.TcpNetConnectOpts) => net.Socket;

/**
 * Resolves a target's addresses and refuses the target if any address is not allowed.
 * @throws OutboundError `URL_NOT_ALLOWED`, or `UNREACHABLE` for a name without addresses.
 */
export async function checkedAddresses(
  { host, isAddress, port }: Target,
  { allowed, own, resolve }: Guard,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const addresses = isAddress ? [host] : await resolve(host, signal);
  if (addresses.length === 0) {
    throw new OutboundError(
      'UNREACHABLE',
      'The host name of the URL does not resolve to an address',
    );
  }
  if (!addresses.every((address) => isReachAllowed(address, port, allowed))) {
    throw new OutboundError(
      'URL_NOT_ALLOWED',
      'The URL leads to a non-public address, which is not allowed',
    );
  }
  const isNamed = addresses.every((address) => isExplicitlyAllowed(address, port, allowed));
  // A public address of our own may reach services closed to strangers, without the proxy in front of them.
  if (!isNamed && (own.hasHost(host) || own.hasAddress(addresses))) {
    throw new OutboundError(
      'URL_NOT_ALLOWED',
      'The URL leads to an address of the platform itself, which is not allowed',
    );
  }
  return addresses;
}

/** Connects to one of the checked addresses. @throws OutboundError `UNREACHABLE`; the signal's reason */
export async function connectTo(
  target: Target,
  addresses: readonly string[],
  { connect }: Guard,
  signal: AbortSignal,
): Promise<net.Socket> {
  const tried = addresses.slice(0, MAX_TRIED);
  let last: unknown;
  for (const [index, address] of tried.entries()) {
    const isLast = index === tried.length - 1;
    const limit = isLast ? signal : AbortSignal.any([signal, AbortSignal.timeout(CONNECT_MS)]);
    try {
      const socket = await openSocket(address, target.port, connect, limit);
      return target.url.protocol === 'https:' ? await secured(socket, target, signal) : socket;
    } catch (error) {
      signal.throwIfAborted();
      last = error;
    }
  }
  if (last instanceof OutboundError) throw last;
  throw new OutboundError('UNREACHABLE', 'The host of the URL does not answer', { cause: last });
}

async function openSocket(
  host: string,
  port: number,
  connect: Connect,
  signal: AbortSignal,
): Promise<net.Socket> {
  signal.throwIfAborted();
  const socket = connect({ host, port, autoSelectFamily: false });
  await happens(socket, 'connect', signal);
  // Checks the actual peer: this is the address that would receive the data.
  if (!isSameAddress(socket.remoteAddress ?? '', host)) {
    socket.destroy();
    throw new OutboundError(
      'URL_NOT_ALLOWED',
      'The URL leads to a non-public address, which is not allowed',
    );
  }
  return socket;
}

async function secured(socket: net.Socket, target: Target, signal: AbortSignal) {
  const servername = target.isAddress ? '' : target.host.replace(/\.$/, '');
  const secure = tls.connect({
    socket,
    servername,
    host: target.host,
    ALPNProtocols: ['http/1.1'],
  });
  try {
    await happens(secure, 'secureConnect', signal);
  } catch (error) {
    if (signal.aborted) throw error;
    throw new OutboundError('UNREACHABLE', 'The TLS connection to the host failed', {
      cause: error,
    });
  }
  return secure;
}

/** Waits for the event; an error, a close or an abort destroys the socket first. */
function happens(socket: net.Socket, event: string, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const settle = (end: () => void) => {
      signal.removeEventListener('abort', abort);
      socket.removeListener(event, done);
      socket.removeListener('close', closed);
      end();
    };
    const done = () => settle(() => resolve());
    const fail = (error: unknown) => {
      settle(() =>
        reject(error instanceof Error ? error : new Error('The connection was aborted')),
      );
      socket.destroy();
    };
    const abort = () => fail(signal.reason);
    const closed = () => fail(new Error('The connection was closed'));
    signal.addEventListener('abort', abort, { once: true });
    socket.once(event, done);
    // This listener stays, because an error on a socket without one ends the process.
    socket.on('error', fail);
    socket.once('close', closed);
    if (signal.aborted) abort();
  });
}

const isSameAddress = (one: string, other: string): boolean =>
  one === other || (isIPv6(one) && isIPv6(other) && canonical(one) === canonical(other));

const canonical = (address: string): string => new URL(`http://[${address}]/`).hostname;
