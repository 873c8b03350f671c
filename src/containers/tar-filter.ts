import { Readable } from 'node:stream';
import { extract, pack, type Header } from 'tar-stream';

/**
 * An archive without the entries of some names, and without links to those: all else as it comes.
 *
 * @param leavesOut asked of each name as it stands in the archive.
 */
export function filteredTar(
  archive: NodeJS.ReadableStream,
  leavesOut: (name: string) => boolean,
): Readable {
  const [entries, kept] = [extract(), pack()];
  const isLeftOut = ({ name, type, linkname }: Header) =>
    leavesOut(name) || (type === 'link' && leavesOut(linkname));
  entries.on('entry', (header, content, next) => {
    if (isLeftOut(header)) {
      content.once('end', () => next());
      content.resume();
    } else {
      content.pipe(kept.entry(header, next));
    }
  });
  entries.once('finish', () => kept.finalize());
  entries.once('error', (error) => kept.destroy(error));
  archive.once('error', (error: Error) => entries.destroy(error));
  archive.pipe(entries);
  return Readable.from(kept);
}
