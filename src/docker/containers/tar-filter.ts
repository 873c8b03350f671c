import { Readable } from 'node:stream';
import { extract, pack, type Header } from 'tar-stream';

/** Drops the entries of some names in an archive, and links to them; passes all else unchanged. */
export function filteredTar(
  archive: NodeJS.ReadableStream,
  leavesOut: (name: string) => boolean,
): Readable {
  const [entries, kept] = [extract(), pack()];
  const isLeftOut = ({ name, type, linkname }: Header) =>
    leavesOut(name) || (type === 'link' && leavesOut(linkname));
  entries.on('entry', (header, content, next) => {
    content.on('error', reportedElsewhere);
    if (isLeftOut(header)) {
      content.once('end', () => next());
      content.resume();
    } else {
      content.pipe(kept.entry(header, next).on('error', reportedElsewhere));
    }
  });
  entries.once('finish', () => kept.finalize());
  kept.on('error', reportedElsewhere);
  entries.on('error', (error) => kept.destroy(error));
  archive.on('error', (error: Error) => entries.destroy(error));
  archive.pipe(entries);
  return Readable.from(kept);
}

/** The reader of the output gets the error; without a listener here it would end the process. */
const reportedElsewhere = (): undefined => undefined;
