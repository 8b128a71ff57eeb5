/*
 * Misuse of calls on sockets.
 */
#include "cases.h"

#include "strand/socket.h"

static strand_address address;

MISUSE(ip_no_place, "strand_address_ip", "place for the address is NULL")
DOES(strand_address_ip(NULL, "127.0.0.1", 1))
MISUSE(ip_no_host, "strand_address_ip", "host is NULL")
DOES(strand_address_ip(&address, NULL, 1))
MISUSE(unix_no_place, "strand_address_unix", "place for the address is NULL")
DOES(strand_address_unix(NULL, "@name"))
MISUSE(unix_no_path, "strand_address_unix", "path is NULL")
DOES(strand_address_unix(&address, NULL))
MISUSE(print_no_address, "strand_address_print", "address is NULL")
DOES(char text[8]; strand_address_print(NULL, text, sizeof text))
MISUSE(print_no_buffer, "strand_address_print", "buffer for the address is NULL")
DOES(strand_address_print(&address, NULL, 8))
MISUSE(local_no_place, "strand_local_address", "place for the address is NULL")
DOES(strand_local_address(0, NULL))
MISUSE(accept_no_place, "strand_accept_from", "place for the address is NULL")
DOES(strand_accept_from(0, NULL))
MISUSE(readv_no_list, "strand_readv", "list of buffers is NULL")
DOES(strand_readv(0, NULL, 1))
MISUSE(writev_no_list, "strand_writev", "list of buffers is NULL")
DOES(strand_writev(1, NULL, 1))
MISUSE(writev_all_no_list, "strand_writev_all", "list of buffers is NULL")
DOES(STRAND_IGNORE(strand_writev_all(1, NULL, 1)))
MISUSE(receive_no_buffer, "strand_receive_from", "buffer is NULL")
DOES(strand_receive_from(0, NULL, 1, NULL))
MISUSE(send_no_bytes, "strand_send_to", "bytes is NULL")
DOES(STRAND_IGNORE(strand_send_to(0, NULL, 1, NULL)))
