import { once } from 'node:events';
import { connect, type AddressInfo, type Server } from 'node:net';
import type { HostAccess } from '../../../src/agents/hosts/host-access.js';
import { HostListener, type HostListenerParts } from '../../../src/agents/hosts/host-listener.js';
import { LOOPBACK_NAMES } from '../../../src/platform/http/own-hosts.js';
import { keptLog } from '../../support/platform-environment.js';
import { testSecrets } from '../../support/secrets.js';

/** Starts a server on a free loopback port. @returns a function that connects to it. */
export async function gatewayAt(server: Server) {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  // A TCP address is never a string.
  const { port } = server.address() as AddressInfo;
  return async () => {
    const socket = connect(port, '127.0.0.1');
    await once(socket, 'connect');
    return socket;
  };
}

/** The listener of a host named `far`, for which a test supplies the parts that it uses. */
export class FarHost {
  readonly secrets = testSecrets();
  readonly log = keptLog().log;
  url = '';
  #listener: HostListener | undefined;

  async listen(host: Partial<HostAccess>, tls?: HostListenerParts['tls']): Promise<void> {
    this.#listener = new HostListener({
      id: 'far',
      host: host as HostAccess,
      secrets: this.secrets,
      names: new Set(LOOPBACK_NAMES),
      agentsNetwork: '10.231.0.0/16',
      log: this.log,
      ...(tls && { tls }),
    });
    const port = await this.#listener.listen('127.0.0.1', 0);
    this.url = `${tls ? 'https' : 'http'}://127.0.0.1:${port}`;
  }

  async close(): Promise<void> {
    await this.#listener?.close();
  }
}
