import { BadGatewayError, BadRequestError } from '../../lib/errors.js';
import { utcDay } from '../../lib/utc-day.js';
import { recordAudit } from '../../platform/audit/audit.js';
import type { Requester } from '../../platform/audit/requester.js';
import { etagOf } from '../../workspace/files/etag.js';
import type { ReadFile, StoredFile } from '../../workspace/files/files.js';
import { checkMemoryPath, MEMORY_FOLDER } from '../../workspace/memory/memory-paths.js';
import type { Memory, WrittenFile } from '../../workspace/workspace.js';

/* The runtime's own memory of an agent: a few Markdown files of its workspace. */

/** Maximum bytes of a write. */
export const MAX_MEMORY_WRITE_BYTES = 65_536;

export const MEMORY_MODES = ['append', 'replace'] as const;

export interface MemoryWrite {
  readonly content: string;
  /** Defaults to the file of this day (UTC). */
  readonly path?: string | undefined;
  readonly mode: (typeof MEMORY_MODES)[number];
  /** The etag that the file must have. */
  readonly etag?: string | undefined;
}

/** Returns a file with its etag. @throws BadRequestError for a path outside the memory; NotFoundError */
export async function readMemory(
  files: Memory,
  path: string,
): Promise<ReadFile & { readonly etag: string }> {
  checkMemoryPath(path);
  const file = await files.read(path);
  return { ...file, etag: etagOf(Buffer.from(file.content, file.encoding ?? 'utf8')) };
}

/**
 * Appends to a file of an agent's memory, or replaces the file, and records the change in the audit log.
 * @throws BadRequestError for a path outside the memory or too large a file; ConflictError for another etag
 */
export async function writeMemory(
  by: Requester,
  files: Memory,
  agent: { readonly id: string; readonly userId: string },
  { content, etag, mode, path = `${MEMORY_FOLDER}/${utcDay()}.md` }: MemoryWrite,
): Promise<StoredFile> {
  checkMemoryPath(path);
  if (Buffer.byteLength(content) > MAX_MEMORY_WRITE_BYTES) {
    throw new BadRequestError(`content must be at most ${MAX_MEMORY_WRITE_BYTES} bytes`);
  }
  const stored: WrittenFile =
    mode === 'append'
      ? await files.append(path, content, { etag })
      : await files.write(path, content, { etag });
  const { etag: now, modified, size } = stored;
  await recordAudit(by.tenant, {
    actor: by.actor,
    userId: agent.userId,
    action: 'memory.write',
    subject: agent.id,
    detail: { path, size, mode },
    requestId: by.requestId,
  });
  // The host of the previous release wrote the file, and does not report these.
  if (modified === undefined || now === undefined) {
    throw new BadGatewayError("The agent's host is of an earlier release: update its worker");
  }
  return { path, size, modified, etag: now };
}
