import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { gzipSync } from 'node:zlib';
import { pack } from 'tar-stream';

const MANIFEST = 'application/vnd.docker.distribution.manifest.v2+json';
const digestOf = (content: Buffer) =>
  `sha256:${createHash('sha256').update(content).digest('hex')}`;

/** A registry of small images on loopback, which Docker reaches without TLS. */
export interface TestRegistry {
  /** Host and port, such as `127.0.0.1:41234`. */
  readonly host: string;
  /** Paths of the requests received. */
  readonly asked: readonly string[];
  /** Publishes a one-file image under a tag, replacing the previous image of that tag. @returns its digest. */
  publish(repository: string, tag: string): Promise<string>;
  close(): Promise<void>;
}

export async function testRegistry(): Promise<TestRegistry> {
  const contents = new Map<string, { readonly type: string; readonly content: Buffer }>();
  const asked: string[] = [];
  const server = createServer((request, response) => {
    const path = request.url ?? '';
    asked.push(path);
    if (path === '/v2/') return response.end('{}');
    const found = contents.get(path);
    if (!found) return response.writeHead(404).end();
    response.setHeader('content-type', found.type);
    response.setHeader('content-length', found.content.length);
    response.setHeader('docker-content-digest', digestOf(found.content));
    return response.end(request.method === 'HEAD' ? undefined : found.content);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  let made = 0;

  return {
    host: `127.0.0.1:${port}`,
    asked,
    async publish(repository, tag) {
      const blob = (content: Buffer, mediaType: string) => {
        const digest = digestOf(content);
        const type = 'application/octet-stream';
        contents.set(`/v2/${repository}/blobs/${digest}`, { type, content });
        return { mediaType, size: content.length, digest };
      };
      const archive = pack();
      archive.entry({ name: 'number' }, `${port} ${++made}`);
      archive.finalize();
      const files = await buffer(archive);
      const settings = {
        architecture: process.arch === 'arm64' ? 'arm64' : 'amd64',
        os: 'linux',
        config: { Labels: { 'org.opencontainers.image.version': tag }, Cmd: ['/number'] },
        rootfs: { type: 'layers', diff_ids: [digestOf(files)] },
      };
      const content = Buffer.from(
        JSON.stringify({
          schemaVersion: 2,
          mediaType: MANIFEST,
          config: blob(
            Buffer.from(JSON.stringify(settings)),
            'application/vnd.docker.container.image.v1+json',
          ),
          layers: [blob(gzipSync(files), 'application/vnd.docker.image.rootfs.diff.tar.gzip')],
        }),
      );
      const digest = digestOf(content);
      for (const name of [tag, digest]) {
        contents.set(`/v2/${repository}/manifests/${name}`, { type: MANIFEST, content });
      }
      return digest;
    },
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
