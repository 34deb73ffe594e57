// The data of the page: plain, or compressed where there is much of it.

export async function unpack(block) {
  if (block.dataset.form === "json") {
    return JSON.parse(block.textContent);
  }
  const packed = atob(block.textContent.trim());
  const bytes = new Uint8Array(packed.length);
  for (let place = 0; place < packed.length; place += 1) {
    bytes[place] = packed.charCodeAt(place);
  }
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
}
