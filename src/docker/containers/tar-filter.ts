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
    content.on('error', toldElsewhere);
    if (isLeftOut(header)) {
      content.once('end', () => next());
      content.resume();
    } else {
      content.pipe(kept.entry(header, next).on('error', toldElsewhere));
    }
  });
  entries.once('finish', () => kept.finalize());
  kept.on('error', toldElsewhere);
  entries.on('error', (error) => kept.destroy(error));
  archive.on('error', (error: Error) => entries.destroy(error));
  archive.pipe(entries);
  return Readable.from(kept);
}

/** Whoever reads what is kept hears of it; but a stream without a listener would end the process. */
const toldElsewhere = (): undefined => undefined;
